// FP4 matrix times vector, kernel 8: b decoded once a block.
//
// Contract  problem.py
// Idea      a block makes float16 numbers of b once, and keeps them in shared memory with b's scales; word j of a vector
//           is a column of its own there, so that 32 lanes read 32 neighbours
// Against   k07_pairs, which decodes b again for every row
// Cost      four bytes from shared memory for each byte of a; and a lane waits for one vector before it asks for the next
// Limits    nine bytes of shared memory for four numbers of b
// Next      k09_in_flight asks for eight vectors before it waits
// Source    GPU MODE and NVIDIA, reference-kernels, problems/nvidia/nvfp4_gemv
#include "fp4_instructions.cuh"
#include "values.cuh"

constexpr int WARPS = 8, ROWS = 2;    // a warp takes its rows one after the other
constexpr unsigned UP = 0x74007400u;  // 2**14, twice: b as itself, so that products stay far from the end of float16

// Numbers i and i + 4 of a word, each 2**-14 of itself.
__device__ inline unsigned pair_of(unsigned word, int i) {
  const unsigned rest = i < 3 ? word << (9 - 4 * i) : word >> 3;
  return (word << (12 - 4 * i) & 0x80008000u) | (rest & 0x0e000e00u);
}

// grid: rows / (WARPS * ROWS), L      block: 32 * WARPS
extern "C" __global__ void gemv_decoded_once(const uint4 *a,                  // [L, M, K/32], 32 numbers in each
                                             const unsigned short *scales_a,  // [L, M, K/32], two in each
                                             const uint4 *b,                  // [L, K/32]
                                             const unsigned short *scales_b,  // [L, K/32]
                                             unsigned short *c,               // [L, M], float16
                                             int M, int K) {
  extern __shared__ uint4 halves[];  // [4, K/32], eight numbers in each; behind them the scales, float2 [K/32]
  const int lane = threadIdx.x % 32, vectors = K / 32;
  float2 *two_of_b = reinterpret_cast<float2 *>(halves + 4 * vectors);
  const long long batch = blockIdx.y;
  b += batch * vectors, scales_b += batch * vectors;
  for (int v = threadIdx.x; v < vectors; v += 32 * WARPS) {
    const uint4 of_b = b[v];
    const unsigned words[4] = {of_b.x, of_b.y, of_b.z, of_b.w};
#pragma unroll
    for (int j = 0; j < 4; j++) {
      unsigned pairs[4];
#pragma unroll
      for (int i = 0; i < 4; i++) pairs[i] = pairs_multiplied(pair_of(words[j], i), UP);
      halves[j * vectors + v] = {pairs[0], pairs[1], pairs[2], pairs[3]};
    }
    two_of_b[v] = e4m3_pair(scales_b[v]);
  }
  __syncthreads();
  for (int r = 0; r < ROWS; r++) {
    const int m = (blockIdx.x * WARPS + threadIdx.x / 32) * ROWS + r;
    if (m >= M) return;
    const long long row = batch * M + m;
    float sum = 0.0f;
    for (int v = lane; v < vectors; v += 32) {
      const uint4 of_a = a[row * vectors + v];
      const unsigned words[4] = {of_a.x, of_a.y, of_a.z, of_a.w};
      const float2 two_a = e4m3_pair(scales_a[row * vectors + v]), two_b = two_of_b[v];
#pragma unroll
      for (int block = 0; block < 2; block++) {
        unsigned of_block = 0;
#pragma unroll
        for (int j = 2 * block; j < 2 * block + 2; j++) {
          const uint4 of_b = halves[j * vectors + v];
          of_block = pairs_added(pair_of(words[j], 0), of_b.x, of_block);
          of_block = pairs_added(pair_of(words[j], 1), of_b.y, of_block);
          of_block = pairs_added(pair_of(words[j], 2), of_b.z, of_block);
          of_block = pairs_added(pair_of(words[j], 3), of_b.w, of_block);
        }
        const float2 both = floats_of(of_block);
        sum += (both.x + both.y) * (block ? two_a.y * two_b.y : two_a.x * two_b.x);
      }
    }
    sum = warp_sum(sum);
    if (lane == 0) c[row] = half_of(sum * 0x1p14f);
  }
}
