// FP4 matrix times vector, kernel 5: numbers from a table in shared memory.
//
// Contract  problem.py
// Idea      sixteen codes, sixteen floats: a code is an index
// Against   k04_block_sums, which works each number out
// Cost      a load from shared memory for every number, of a and of b, and its address before it
// Next      k06_bits needs no memory
// Source    GPU MODE and NVIDIA, reference-kernels, problems/nvidia/nvfp4_gemv
#include "fp4_instructions.cuh"
#include "values.cuh"

constexpr int WARPS = 8;  // rows of a block

// grid: rows / WARPS, L      block: 32 * WARPS
extern "C" __global__ void gemv_table(const uint4 *a,                  // [L, M, K/32], 32 numbers in each
                                      const unsigned short *scales_a,  // [L, M, K/32], two in each
                                      const uint4 *b,                  // [L, K/32]
                                      const unsigned short *scales_b,  // [L, K/32]
                                      unsigned short *c,               // [L, M], float16
                                      int M, int K) {
  __shared__ float e2m1[16];
  if (threadIdx.x < 16) e2m1[threadIdx.x] = e2m1_by_definition(threadIdx.x);
  __syncthreads();
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
      float of_block = 0.0f;
#pragma unroll
      for (int i = 0; i < 16; i++) {
        const int word = 2 * block + i / 8, bit = 4 * (i % 8);
        of_block += e2m1[words_a[word] >> bit & 15] * e2m1[words_b[word] >> bit & 15];
      }
      sum += of_block * (block ? two_a.y * two_b.y : two_a.x * two_b.x);
    }
  }
  sum = warp_sum(sum);
  if (lane == 0) c[row] = half_of(sum);
}
