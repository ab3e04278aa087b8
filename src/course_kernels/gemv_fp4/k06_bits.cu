// FP4 matrix times vector, kernel 6: a number's bits, put where a float has them.
//
// Contract  problem.py
// Idea      in the places of a float32, its lowest two bits of exponent and its first of mantissa, an E2M1 number is
//           2**-126 of itself, subnormal or not: sign and rest go to their places, and one multiplication does the rest
// Against   k05_table, which asks shared memory for every number
// Cost      two shifts, two masks and a multiplication for one number; and b anew for every row
// Next      k07_pairs does two numbers with the same instructions
// Source    Frantar et al. 2024, arXiv:2408.11743 (bits into place, then one multiplication)
#include "fp4_instructions.cuh"
#include "values.cuh"

constexpr int WARPS = 8;  // rows of a block

// The number at `bit` of a word.
__device__ inline float e2m1(unsigned word, int bit) {
  const unsigned sign = word << (28 - bit) & 0x80000000u;
  const unsigned rest = (bit <= 20 ? word << (22 - bit) : word >> (bit - 22)) & 0x01c00000u;
  return __uint_as_float(sign | rest) * 0x1p126f;
}

// grid: rows / WARPS, L      block: 32 * WARPS
extern "C" __global__ void gemv_bits(const uint4 *a,                  // [L, M, K/32], 32 numbers in each
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
      float of_block = 0.0f;
#pragma unroll
      for (int i = 0; i < 16; i++) {
        const int word = 2 * block + i / 8, bit = 4 * (i % 8);
        of_block += e2m1(words_a[word], bit) * e2m1(words_b[word], bit);
      }
      sum += of_block * (block ? two_a.y * two_b.y : two_a.x * two_b.x);
    }
  }
  sum = warp_sum(sum);
  if (lane == 0) c[row] = half_of(sum);
}
