// FP4 matrix times vector, kernel 3: 16 bytes a load.
//
// Contract  problem.py
// Idea      a lane loads 32 numbers of a at once, and the two scales that are theirs; and the same of b
// Against   k02_warp_a_row, which asks for each byte, and for a scale with each
// Cost      two multiplications by scales for every number, which sixteen numbers have in common
// Next      k04_block_sums multiplies by the scales once a block
// Source    GPU MODE and NVIDIA, reference-kernels, problems/nvidia/nvfp4_gemv
#include "fp4_instructions.cuh"
#include "values.cuh"

constexpr int WARPS = 8;  // rows of a block

__device__ inline float product(unsigned a, float scale_a, unsigned b, float scale_b) {
  return (e2m1_by_definition(a) * scale_a) * (e2m1_by_definition(b) * scale_b);
}

// grid: rows / WARPS, L      block: 32 * WARPS
extern "C" __global__ void gemv_vectors(const uint4 *a,                  // [L, M, K/32], 32 numbers in each
                                        const unsigned short *scales_a,  // [L, M, K/32], two in each
                                        const uint4 *b,                  // [L, K/32]
                                        const unsigned short *scales_b,  // [L, K/32]
                                        unsigned short *c,               // [L, M], float16
                                        int M, int K) {
  const int m = blockIdx.x * WARPS + threadIdx.x / 32, lane = threadIdx.x % 32, vectors = K / 32;
  if (m >= M) return;
  const long long row = static_cast<long long>(blockIdx.y) * M + m, batch = blockIdx.y;
  a += row * vectors, scales_a += row * vectors;
  b += batch * vectors, scales_b += batch * vectors;
  float sum = 0.0f;
  for (int v = lane; v < vectors; v += 32) {
    const uint4 of_a = a[v], of_b = b[v];
    const unsigned words_a[4] = {of_a.x, of_a.y, of_a.z, of_a.w}, words_b[4] = {of_b.x, of_b.y, of_b.z, of_b.w};
    const float2 two_a = e4m3_pair(scales_a[v]), two_b = e4m3_pair(scales_b[v]);
#pragma unroll
    for (int block = 0; block < 2; block++) {
      const float scale_a = block ? two_a.y : two_a.x, scale_b = block ? two_b.y : two_b.x;
#pragma unroll
      for (int i = 0; i < 16; i++) {
        const int word = 2 * block + i / 8, bit = 4 * (i % 8);
        sum += product(words_a[word] >> bit & 15, scale_a, words_b[word] >> bit & 15, scale_b);
      }
    }
  }
  sum = warp_sum(sum);
  if (lane == 0) c[row] = half_of(sum);
}
