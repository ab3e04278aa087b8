// FP4 matrix times vector, kernel 9: eight vectors under way for each lane.
//
// Contract  problem.py
// Idea      a warp takes four rows at once, and two vectors of each: eight loads that do not wait for each other; and
//           what is read of b serves four rows
// Against   k08_decoded_once, where a lane waits for a vector before it asks for the next
// Cost      for two numbers of a still two shifts and two LOP3
// Limits    nine bytes of shared memory for four numbers of b
// Next      k10_bytes decodes four numbers a register
// Source    GPU MODE and NVIDIA, reference-kernels, problems/nvidia/nvfp4_gemv
#include "fp4_instructions.cuh"
#include "values.cuh"

constexpr int WARPS = 4, ROWS = 4;    // a warp takes its rows side by side
constexpr int VECTORS = 2;            // of each row: ROWS * VECTORS * 16 bytes are under way for a lane
constexpr unsigned UP = 0x74007400u;  // 2**14, twice: b as itself, so that products stay far from the end of float16

// Numbers i and i + 4 of a word, each 2**-14 of itself.
__device__ inline unsigned pair_of(unsigned word, int i) {
  const unsigned rest = i < 3 ? word << (9 - 4 * i) : word >> 3;
  return (word << (12 - 4 * i) & 0x80008000u) | (rest & 0x0e000e00u);
}

// grid: rows / (WARPS * ROWS), L      block: 32 * WARPS
extern "C" __global__ void gemv_in_flight(const uint4 *a,                  // [L, M, K/32], 32 numbers in each
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
  const int m = (blockIdx.x * WARPS + threadIdx.x / 32) * ROWS;
  if (m >= M) return;
  const uint4 *rows[ROWS];
  const unsigned short *scales[ROWS];
#pragma unroll
  for (int r = 0; r < ROWS; r++) {  // past the last row, that one again: nobody writes what comes of it
    const long long row = batch * M + min(m + r, M - 1);
    rows[r] = a + row * vectors, scales[r] = scales_a + row * vectors;
  }
  float sums[ROWS] = {};
  for (int first = lane; first < vectors; first += 32 * VECTORS) {
    uint4 of_a[VECTORS][ROWS];
    unsigned two[VECTORS][ROWS];
#pragma unroll
    for (int u = 0; u < VECTORS; u++) {
      const int v = min(first + 32 * u, vectors - 1);
#pragma unroll
      for (int r = 0; r < ROWS; r++) of_a[u][r] = streamed(rows[r] + v), two[u][r] = streamed_pair(scales[r] + v);
    }
#pragma unroll
    for (int u = 0; u < VECTORS; u++) {
      const int v = first + 32 * u;
      if (v >= vectors) break;
      const float2 two_b = two_of_b[v];
#pragma unroll
      for (int block = 0; block < 2; block++) {
        const uint4 low = halves[2 * block * vectors + v], high = halves[(2 * block + 1) * vectors + v];
#pragma unroll
        for (int r = 0; r < ROWS; r++) {
          const unsigned first_word = block ? of_a[u][r].z : of_a[u][r].x;
          const unsigned second_word = block ? of_a[u][r].w : of_a[u][r].y;
          unsigned of_block = pairs_multiplied(pair_of(first_word, 0), low.x);
          of_block = pairs_added(pair_of(first_word, 1), low.y, of_block);
          of_block = pairs_added(pair_of(first_word, 2), low.z, of_block);
          of_block = pairs_added(pair_of(first_word, 3), low.w, of_block);
          of_block = pairs_added(pair_of(second_word, 0), high.x, of_block);
          of_block = pairs_added(pair_of(second_word, 1), high.y, of_block);
          of_block = pairs_added(pair_of(second_word, 2), high.z, of_block);
          of_block = pairs_added(pair_of(second_word, 3), high.w, of_block);
          const float2 both = floats_of(of_block), two_a = e4m3_pair(two[u][r]);
          sums[r] += (both.x + both.y) * (block ? two_a.y * two_b.y : two_a.x * two_b.x);
        }
      }
    }
  }
#pragma unroll
  for (int r = 0; r < ROWS; r++) {
    const float sum = warp_sum(sums[r]);
    if (lane == 0 && m + r < M) c[batch * M + m + r] = half_of(sum * 0x1p14f);
  }
}
