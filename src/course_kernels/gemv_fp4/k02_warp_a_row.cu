// FP4 matrix times vector, kernel 2: one warp a row, its lanes on neighbouring bytes.
//
// Contract  problem.py
// Idea      lane i takes bytes i, i + 32, …: what a warp reads at once is one line of memory. The lanes add up in the end
// Against   k01_thread_a_row, whose threads each read a line of their own for a byte
// Cost      a load for every byte of a, and another for its scale, which eight bytes share
// Next      k03_vectors loads 16 bytes at a time
// Source    GPU MODE and NVIDIA, reference-kernels, problems/nvidia/nvfp4_gemv
#include "fp4_instructions.cuh"
#include "values.cuh"

constexpr int WARPS = 8;  // rows of a block

__device__ inline float product(unsigned a, float scale_a, unsigned b, float scale_b) {
  return (e2m1_by_definition(a) * scale_a) * (e2m1_by_definition(b) * scale_b);
}

// grid: rows / WARPS, L      block: 32 * WARPS
extern "C" __global__ void gemv_warp_a_row(const unsigned char *a,         // [L, M, K/2]
                                           const unsigned char *scales_a,  // [L, M, K/16]
                                           const unsigned char *b,         // [L, K/2]
                                           const unsigned char *scales_b,  // [L, K/16]
                                           unsigned short *c,              // [L, M], float16
                                           int M, int K) {
  const int m = blockIdx.x * WARPS + threadIdx.x / 32, lane = threadIdx.x % 32;
  if (m >= M) return;
  const long long row = static_cast<long long>(blockIdx.y) * M + m;
  a += row * (K / 2), scales_a += row * (K / 16);
  b += static_cast<long long>(blockIdx.y) * (K / 2), scales_b += static_cast<long long>(blockIdx.y) * (K / 16);
  float sum = 0.0f;
  for (int k = lane; k < K / 2; k += 32) {
    const float scale_a = e4m3(scales_a[k / 8]), scale_b = e4m3(scales_b[k / 8]);
    sum += product(a[k] & 15, scale_a, b[k] & 15, scale_b);
    sum += product(a[k] >> 4, scale_a, b[k] >> 4, scale_b);
  }
  sum = warp_sum(sum);
  if (lane == 0) c[row] = half_of(sum);
}
