// FP4 matrix times vector, kernel 7: two numbers a register.
//
// Contract  problem.py
// Idea      numbers i and i + 4 of a word lie 16 bits apart: one shift and one mask put the bits of both where a float16
//           has them, as 2**-14 of themselves, and one HFMA2 multiplies and adds both. A half adds up eight products,
//           at most 288, in steps of a quarter: eleven bits hold that, so the sum of a block stays exact
// Against   k06_bits, which moves and multiplies one number at a time
// Cost      for two numbers of a up to two shifts and two LOP3, and an HFMA2; as much for b, and one multiplication
//           more, anew for every row
// Next      k08_decoded_once keeps b as halves
// Source    Frantar et al. 2024, arXiv:2408.11743; Kim et al. 2022, arXiv:2211.10017
#include "fp4_instructions.cuh"
#include "values.cuh"

constexpr int WARPS = 8;              // rows of a block
constexpr unsigned UP = 0x74007400u;  // 2**14, twice: b as itself, so that products stay far from the end of float16

// Numbers i and i + 4 of a word, each 2**-14 of itself.
__device__ inline unsigned pair_of(unsigned word, int i) {
  const unsigned rest = i < 3 ? word << (9 - 4 * i) : word >> 3;
  return (word << (12 - 4 * i) & 0x80008000u) | (rest & 0x0e000e00u);
}

// grid: rows / WARPS, L      block: 32 * WARPS
extern "C" __global__ void gemv_pairs(const uint4 *a,                  // [L, M, K/32], 32 numbers in each
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
      unsigned of_block = 0;
#pragma unroll
      for (int i = 0; i < 8; i++) {
        const unsigned pair_b = pairs_multiplied(pair_of(words_b[2 * block + i / 4], i % 4), UP);
        of_block = pairs_added(pair_of(words_a[2 * block + i / 4], i % 4), pair_b, of_block);
      }
      const float2 halves = floats_of(of_block);
      sum += (halves.x + halves.y) * (block ? two_a.y * two_b.y : two_a.x * two_b.x);
    }
  }
  sum = warp_sum(sum);
  if (lane == 0) c[row] = half_of(sum * 0x1p14f);
}
