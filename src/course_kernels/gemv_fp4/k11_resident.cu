// FP4 matrix times vector, kernel 11: b stays in registers, and the rows pass by.
//
// Contract  problem.py
// Idea      K is split over the lanes of several warps, 32 numbers a lane. A lane decodes its part of b once, and then
//           loads that place of row after row; the loads of the next rows are under way while it works on one. Sums of
//           four rows are folded into each other, a quarter of the lanes for each, and the warps' parts of all rows are
//           added at the end. The rows are shared out evenly, two blocks a multiprocessor
// Against   k10_bytes, which reads b from shared memory for every four rows, decodes it anew in each block, and leaves
//           multiprocessors without work when the last blocks do not come out even
// Cost      6 shuffles for four rows; a lane past the end of K has no work
// Limits    more than 16384 numbers in a row are taken in several walks over the block's rows
// Source    the fold is that of a matrix transposed in registers; the rest is k02's and k10's
#include "fp4_instructions.cuh"
#include "values.cuh"
#include "bytes.cuh"

#ifndef WARPS
#define WARPS 16  // along a row; the launcher names as many as a row fills
#endif
#ifndef GROUPS
#define GROUPS 1  // of warps, each with a row of its own
#endif

constexpr int THREADS = 32 * WARPS * GROUPS;
constexpr int ROWS = 4;         // under way for each lane
constexpr int MOST_ROWS = 256;  // of a block

struct Piece {
  uint4 words;
  unsigned scales;
};

// Two numbers of a lane become one: its own half of the lanes keeps `mine`, and gets the partner's part of it.
__device__ inline float folded(float first, float second, int step) {
  const bool upper = threadIdx.x & step;
  const float gone = upper ? first : second, mine = upper ? second : first;
  return mine + __shfl_xor_sync(~0u, gone, step);
}

// grid: blocks, L      block: THREADS
extern "C" __global__ void __launch_bounds__(THREADS, 2)
    gemv_resident(const uint4 *a,                  // [L, M, K/32], 32 numbers in each
                  const unsigned short *scales_a,  // [L, M, K/32], two in each
                  const uint4 *b,                  // [L, K/32]
                  const unsigned short *scales_b,  // [L, K/32]
                  unsigned short *c,               // [L, M], float16
                  int M, int K) {
  __shared__ float parts[MOST_ROWS][WARPS];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32 % WARPS, group = threadIdx.x / 32 / WARPS;
  const int vectors = K / 32;
  const unsigned low = LOW | threadIdx.y;  // always 0, but the compiler cannot know: it stays in a register
  const long long batch = blockIdx.y;
  const int first = static_cast<long long>(M) * blockIdx.x / gridDim.x;
  const int rows = static_cast<int>(static_cast<long long>(M) * (blockIdx.x + 1) / gridDim.x) - first;
  for (int start = 0; start < vectors; start += 32 * WARPS) {
    const int v = start + 32 * warp + lane;
    const bool inside = v < vectors;
    // The places of the rows to load next, for a and its scales; a lane past the end of K has none.
    const int mine = inside ? rows : 0;
    const uint4 *from = a + (batch * M + first + group) * vectors + v;
    const unsigned short *scales_from = scales_a + (batch * M + first + group) * vectors + v;
    const int step = GROUPS * vectors;
    Piece pieces[ROWS] = {};
#pragma unroll
    for (int r = 0; r < ROWS; r++, from += step, scales_from += step) {
      const bool there = group + r * GROUPS < mine;
      stream(pieces[r].words, from, there), stream_pair(pieces[r].scales, scales_from, there);
    }

    // Where there is nothing, zeros: 0 * 0 adds nothing.
    const uint4 of_b = inside ? b[batch * vectors + v] : uint4{0, 0, 0, 0};
    const float2 two_b = e4m3_pair(inside ? scales_b[batch * vectors + v] : 0);
    const Bytes x = with_signs(of_b.x), y = with_signs(of_b.y), z = with_signs(of_b.z), w = with_signs(of_b.w);
    const uint4 low_b = {x.low, x.high, y.low, y.high}, high_b = {z.low, z.high, w.low, w.high};

    float *part = &parts[group + lane / 8 * GROUPS][warp];
#pragma unroll 1
    for (int row = group; row < rows; row += ROWS * GROUPS, part += ROWS * GROUPS * WARPS) {
      float sums[ROWS];
#pragma unroll
      for (int r = 0; r < ROWS; r++, from += step, scales_from += step) {
        const uint4 &words = pieces[r].words;
        const float2 two_a = e4m3_pair(pieces[r].scales);
        sums[r] = block_sum(words.x, words.y, low_b, low) * two_a.x * two_b.x;
        sums[r] += block_sum(words.z, words.w, high_b, low) * two_a.y * two_b.y;
        const bool there = row + (ROWS + r) * GROUPS < mine;  // past the last row: the last numbers again
        stream(pieces[r].words, from, there), stream_pair(pieces[r].scales, scales_from, there);
      }
      // Lanes 0 to 7 end with row 0, 8 to 15 with row 1, and so on.
      float sum = folded(folded(sums[0], sums[2], 16), folded(sums[1], sums[3], 16), 8);
#pragma unroll
      for (int other = 4; other; other /= 2) sum += __shfl_xor_sync(~0u, sum, other);
      if (lane % 8 == 0 && row + lane / 8 * GROUPS < rows) *part = start ? *part + sum : sum;
    }
  }
  __syncthreads();
  for (int row = threadIdx.x; row < rows; row += THREADS) {
    float sum = 0.0f;
#pragma unroll
    for (int i = 0; i < WARPS; i++) sum += parts[row][i];
    c[batch * M + first + row] = half_of(sum * 0.25f);
  }
}
