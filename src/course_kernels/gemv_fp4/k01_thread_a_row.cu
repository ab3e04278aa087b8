// FP4 matrix times vector, kernel 1: as the formula says it, one thread a row.
//
// Contract  problem.py
// Idea      a thread walks along its row, a byte at a time, and makes two numbers of each, of a and of b, with their
//           scales
// Cost      neighbouring threads are K/2 bytes apart, so each byte is a sector of its own; and for each number of a
//           two are decoded, and two scales
// Next      k02_warp_a_row lets neighbours read neighbouring bytes
// Source    GPU MODE and NVIDIA, reference-kernels, problems/nvidia/nvfp4_gemv
#include "fp4_instructions.cuh"
#include "values.cuh"

constexpr int THREADS = 128;  // rows of a block: few, so that a few thousand rows reach all multiprocessors

__device__ inline float product(unsigned a, float scale_a, unsigned b, float scale_b) {
  return (e2m1_by_definition(a) * scale_a) * (e2m1_by_definition(b) * scale_b);
}

// grid: rows / THREADS, L      block: THREADS
extern "C" __global__ void gemv_thread_a_row(const unsigned char *a,         // [L, M, K/2]
                                             const unsigned char *scales_a,  // [L, M, K/16]
                                             const unsigned char *b,         // [L, K/2]
                                             const unsigned char *scales_b,  // [L, K/16]
                                             unsigned short *c,              // [L, M], float16
                                             int M, int K) {
  const int m = blockIdx.x * THREADS + threadIdx.x;
  if (m >= M) return;
  const long long row = static_cast<long long>(blockIdx.y) * M + m;
  a += row * (K / 2), scales_a += row * (K / 16);
  b += static_cast<long long>(blockIdx.y) * (K / 2), scales_b += static_cast<long long>(blockIdx.y) * (K / 16);
  float sum = 0.0f;
  for (int k = 0; k < K / 2; k++) {
    const float scale_a = e4m3(scales_a[k / 8]), scale_b = e4m3(scales_b[k / 8]);
    sum += product(a[k] & 15, scale_a, b[k] & 15, scale_b);
    sum += product(a[k] >> 4, scale_a, b[k] >> 4, scale_b);
  }
  c[row] = half_of(sum);
}
