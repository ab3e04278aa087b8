// What kernels 2 and 3 share: how a tile of weights is brought in boxes, how x is weighed for the norm where it lies, how
// a box is multiplied, and where the sums go.
//
// Contract  macros of by_tma.py: those of epilogue.cuh, ROWS (of x that a product takes: 16 or 32), STAGES, and NORM (0 or
//           1). A tile is 128 rows of weights: 64 for each of two warpgroups, and row p of the one meets row p of the
//           other in what stands behind
// Source    PTX ISA, wgmma and cp.async.bulk.tensor; CUTLASS, Efficient GEMM
#pragma once

#include "hopper/tma.cuh"
#include "hopper/warpgroup.cuh"
#include "epilogue.cuh"

constexpr int PIECE = 64;  // columns of a box: 128 bytes, a row of the swizzle
constexpr int HALF = 64;   // rows of weights of a warpgroup
constexpr int BOX = BEHIND == ROPE && HEAD == 64 ? 32 : HALF;  // rows of a box
constexpr unsigned ROW_BYTES = 128, HALF_BYTES = HALF * ROW_BYTES;
constexpr unsigned STAGE_BYTES = 2 * HALF_BYTES + ROWS * ROW_BYTES;
constexpr int PITCH = ROWS + 1;  // floats of a row of sums: rows begin in different banks
constexpr int MULTIPLYING = 256, FETCHING = 8, WEIGHING = 9;  // threads; numbers of the two warps
constexpr int THREADS = MULTIPLYING + 128;  // two more warps stand idle: a block is made of warpgroups

// --- bringing -----------------------------------------------------------------

struct Weights {
  const TensorMap &first, &second, &third;  // all; of gate and up; of queries, keys and values
  int H, KV;
};

// Of a tile the boxes from that column on, and room at the barrier for those of x, which are asked for apart.
__device__ inline void bring_weights(char *stage, Barrier *full, const Weights &w, CachePolicy policy, int tile,
                                     int column) {
  arrive_and_expect_bytes(full, STAGE_BYTES);
#pragma unroll
  for (int i = 0; i < 2 * HALF / BOX; i++) {
    const int half = i / (HALF / BOX);
    char *to = stage + i * BOX * ROW_BYTES;
    if (BEHIND == GATE) {
      load_tile(to, half ? w.second : w.first, full, policy, column, tile * HALF);
    } else if (BEHIND == ROPE) {
      const int head = tile * (2 * HALF / HEAD) + i % (HALF / BOX);
      const int own = head < w.H ? head : head < w.H + w.KV ? head - w.H : head - w.H - w.KV;  // past the last one: zeros
      load_tile(to, head < w.H ? w.first : head < w.H + w.KV ? w.second : w.third, full, policy, column,
                own * HEAD + half * (HEAD / 2));
    } else {
      load_tile(to, w.first, full, policy, column, tile * 2 * HALF + half * HALF);
    }
  }
}

__device__ inline void bring_x(char *stage, Barrier *full, const TensorMap &x, int column) {
  load_tile(stage + 2 * HALF_BYTES, x, full, column, 0);
}

// --- weighing, by a warp ------------------------------------------------------

// The rows of x in a box times g, of which these are the lane's eight, and their squares of before added up: of_row[i] is
// of row lane / 8 + 4 * i.
__device__ inline void weigh(char *stage, const uint4 &g, float (&of_row)[ROWS / 4]) {
  const int lane = threadIdx.x % 32;
  const unsigned weight[4] = {g.x, g.y, g.z, g.w};
#pragma unroll
  for (int i = 0; i < ROWS / 4; i++) {
    const unsigned offset = (lane / 8 + 4 * i) * ROW_BYTES + lane % 8 * 16;
    uint4 *place = reinterpret_cast<uint4 *>(stage + 2 * HALF_BYTES + swizzled(offset));
    const uint4 numbers = *place;
    unsigned both[4] = {numbers.x, numbers.y, numbers.z, numbers.w};
#pragma unroll
    for (int j = 0; j < 4; j++) {
      const float a = unpacked<Type>(both[j], false), b = unpacked<Type>(both[j], true);
      of_row[i] += a * a + b * b;
      both[j] = rounded_pair<Type>(a * unpacked<Type>(weight[j], false), b * unpacked<Type>(weight[j], true));
    }
    *place = {both[0], both[1], both[2], both[3]};
  }
}

// The squares of whole rows to shared memory; the lanes' own begin anew.
__device__ inline void leave_squares(float *squares, float (&of_row)[ROWS / 4]) {
  const int lane = threadIdx.x % 32;
#pragma unroll
  for (int i = 0; i < ROWS / 4; i++) {
    for (int step = 1; step < 8; step *= 2) of_row[i] += __shfl_xor_sync(0xffffffffu, of_row[i], step);
    if (lane % 8 == 0) squares[lane / 8 + 4 * i] = of_row[i];
    of_row[i] = 0;
  }
}

// --- multiplying, by a warpgroup ----------------------------------------------

// A box's product is asked for; it is added to d unless it is the first of a tile.
__device__ inline void multiply_box(float (&d)[ROWS / 2], const char *stage, int half, bool add) {
  const Descriptor a = k_major(address_in_shared(stage + half * HALF_BYTES));
  const Descriptor b = k_major(address_in_shared(stage + 2 * HALF_BYTES));
  wgmma_fence(d);
#pragma unroll
  for (int k = 0; k < PIECE / 16; k++) products<ROWS, Type>(d, advance(a, k * 32), advance(b, k * 32), add || k > 0);
  wgmma_commit();
}

// The sums [128, PITCH] of a tile in shared memory: this warpgroup's half.
__device__ inline void leave_sums(float *sums, const float (&d)[ROWS / 2], int half) {
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32 % 4;
  const int row = half * HALF + warp * 16 + lane / 4, column = lane % 4 * 2;
#pragma unroll
  for (int i = 0; i < ROWS / 2; i++) sums[(row + i % 4 / 2 * 8) * PITCH + i / 4 * 8 + column + i % 2] = d[i];
}
