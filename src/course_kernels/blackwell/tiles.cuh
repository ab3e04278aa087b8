// What the multiplies for Blackwell share: which tile of C is whose, and sums from tensor memory to C.
//
// Source    Triton tutorial 03 for the order of tiles; PTX ISA, tcgen05.ld, for where the sums are
#pragma once

// Behind tcgen05.cuh.
#include <hopper/warpgroup.cuh>

constexpr unsigned ROW_BYTES = 128;               // one row of the swizzle
constexpr unsigned PANEL_BYTES = 64 * ROW_BYTES;  // 64 rows of a panel
using Half = unsigned short;                      // 16 bits that nobody here looks into

constexpr __device__ int ceil_div(int x, int y) { return (x + y - 1) / y; }

struct Tile {
  int m, n;  // its first row and column of C
};

// The tiles of C, `high` x `wide`, down a column of GROUP tiles, then the next column: blocks that run together share few
// strips of A and of B, and these stay in L2.
constexpr int GROUP = 8;
__device__ inline Tile tile_at(int number, int tiles_m, int tiles_n, int high, int wide) {
  const int first = number / (GROUP * tiles_n) * GROUP, place = number % (GROUP * tiles_n);
  const int height = min(GROUP, tiles_m - first);  // the last group may be lower
  return {(first + place % height) * high, place / height * wide};
}

// Sums [128, COLUMNS] of a block to C, each times `scale` and rounded once, without what lies past the edges; columns of
// C are a multiple of 8. All four warps call, and each takes the 32 rows that it can reach.
template <int COLUMNS, class Type = Bf16x16>
__device__ inline void write_sums(unsigned tmem, Half *C, int M, int N, int first_m, int first_n, float scale = 1.0f) {
  const int warp = threadIdx.x / 32 % 4, lane = threadIdx.x % 32;
  const long long m = first_m + warp * 32 + lane;
  for (int column = 0; column < COLUMNS; column += 32) {
    float d[32];
    load_sums(d, tmem + (static_cast<unsigned>(warp * 32) << 16) + column);
    wait_for_sums(d);
#pragma unroll
    for (int i = 0; i < 32; i += 8) {
      const int n = first_n + column + i;
      uint4 eight;
      eight.x = rounded_pair<Type>(d[i] * scale, d[i + 1] * scale);
      eight.y = rounded_pair<Type>(d[i + 2] * scale, d[i + 3] * scale);
      eight.z = rounded_pair<Type>(d[i + 4] * scale, d[i + 5] * scale);
      eight.w = rounded_pair<Type>(d[i + 6] * scale, d[i + 7] * scale);
      if (m < M && n < N) *reinterpret_cast<uint4 *>(C + m * N + n) = eight;
    }
  }
}
