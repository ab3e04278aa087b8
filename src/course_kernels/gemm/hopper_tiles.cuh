// What the kernels from k06_tma on share: the type, which tile of C is whose, and sums to memory.
//
// Source    Triton tutorial 03 for the order of tiles; PTX ISA, wgmma, for where the sums lie
#pragma once

#include "hopper/tma.cuh"
#include "hopper/warpgroup.cuh"

#ifndef FLOAT16
#define FLOAT16 0
#endif
#if FLOAT16
using Type = F16x16;
#else
using Type = Bf16x16;
#endif
using Half = unsigned short;  // 16 bits that nobody here looks into

constexpr int BK = 64;                         // 128 bytes of a row of A: one row of the swizzle
constexpr unsigned ROW_BYTES = 128;            // a tile lies in panels, 64 numbers wide
constexpr unsigned PANEL_BYTES = 64 * ROW_BYTES;  // 64 rows of a panel

constexpr __device__ int ceil_div(int x, int y) { return (x + y - 1) / y; }

struct Tile {
  int m, n;  // its first row and column of C
};

// The tiles of C, `high` x `wide`, in the order in which blocks take them: down a column of `group` tiles, then the
// next column. Blocks that run together then share few strips of A and of B, and these stay in L2.
__device__ inline Tile tile_at(int number, int tiles_m, int tiles_n, int group, int high, int wide) {
  const int first = number / (group * tiles_n) * group, place = number % (group * tiles_n);
  const int height = min(group, tiles_m - first);  // the last group may be lower
  return {(first + place % height) * high, place / height * wide};
}

// A warpgroup's sums [64, N] to C, from (first_m, first_n) on, without what lies past the edges; N of C is even.
template <int R>
__device__ inline void write(const float (&d)[R], Half *C, int M, int N, int first_m, int first_n) {
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32 % 4;
#pragma unroll
  for (int half = 0; half < 2; half++) {
    const long long m = first_m + warp * 16 + half * 8 + lane / 4;
#pragma unroll
    for (int j = 0; j < R / 4; j++) {
      const int n = first_n + j * 8 + lane % 4 * 2;
      const unsigned both = rounded_pair<Type>(d[4 * j + 2 * half], d[4 * j + 2 * half + 1]);
      if (m < M && n < N) *reinterpret_cast<unsigned *>(C + m * N + n) = both;
    }
  }
}

// The same in float32, as they are.
template <int R>
__device__ inline void write_floats(const float (&d)[R], float *P, int M, int N, int first_m, int first_n) {
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32 % 4;
#pragma unroll
  for (int half = 0; half < 2; half++) {
    const long long m = first_m + warp * 16 + half * 8 + lane / 4;
#pragma unroll
    for (int j = 0; j < R / 4; j++) {
      const int n = first_n + j * 8 + lane % 4 * 2;
      const float2 both = make_float2(d[4 * j + 2 * half], d[4 * j + 2 * half + 1]);
      if (m < M && n < N) *reinterpret_cast<float2 *>(P + m * N + n) = both;
    }
  }
}
