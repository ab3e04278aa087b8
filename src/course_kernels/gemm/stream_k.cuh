// Kernel 14's last round: clusters for which it has no tile begin those of the others, long before.
//
// Contract  macro BEGUN; without it, whole tiles in turn, as kernel 13. `ahead`: steps that are begun of a tile
// Idea      with 256 tiles for 66 clusters the fourth round has work for 58. The other 8 do the first `ahead` steps of
//           those 58 tiles before anything else, and leave the sums to those who do the rest three rounds later. These
//           add them to their own, so the order is the same in every call
// Limits    more tiles than clusters, and a partial last round; the flags are 0 before and after. Clusters that begin
//           tiles have the lowest numbers, so they run before anybody waits for them
// Source    Osama et al. 2023, Stream-K, for sharing the last round; PTX ISA, membar
#pragma once

#include "by_size.cuh"

#ifndef BEGUN
#define BEGUN 0
#endif

struct Begun {
  int rounds, left, free, begins;  // whole rounds, tiles left, clusters without one, and how many I begin
};

__device__ inline Begun begun_of(Turns &turns, int M, int N) {
  if (!BEGUN) return {};
  const int tiles = ceil_div(M, BM * CLUSTER_M) * ceil_div(N, BN * CLUSTER_N);
  const int rounds = tiles / turns.hop, left = tiles % turns.hop, free = turns.hop - left;
  const int begins = turns.mine < free ? ceil_div(left - turns.mine, free) : 0;
  turns.all = begins + rounds + (turns.mine >= free);
  return {rounds, left, free, begins};
}

// What to do in a turn. Of a tile that is shared `split` is its number among these, else -1.
__device__ inline Part turn_at(const Turns &turns, const Begun &of, int turn, int M, int N, int K, int group,
                               int splits, int ahead) {
  if (!BEGUN) return part_at(turns.mine + turn * turns.hop, M, N, K, group, splits);
  const int round = turn - of.begins, shared = round < 0 ? turns.mine + turn * of.free : turns.mine - of.free;
  const bool whole = 0 <= round && round < of.rounds;
  const int number = whole ? turns.mine + round * turns.hop : of.rounds * turns.hop + shared;
  Part part = part_at(number, M, N, K, group, 1);
  part.split = whole ? -1 : shared;
  if (!whole && round < 0) part.end = ahead;
  if (!whole && round >= 0) part.begin = ahead;
  return part;
}

// Where a consumer's sums of a shared tile lie, and behind all of them the flags.
struct Left {
  float4 *sums;  // [STRIPS * BN / 8, 128]
  volatile unsigned *flag;
};

__device__ inline Left left_at(float *partial, const Begun &of, int which, int consumer) {
  const int each = STRIPS * BN / 8 * 128, rank = CLUSTER > 1 ? cluster_rank() : 0;
  const int place = (which * CLUSTER + rank) * CONSUMERS + consumer, places = of.left * CLUSTER * CONSUMERS;
  float4 *all = reinterpret_cast<float4 *>(partial);
  return {all + static_cast<long long>(place) * each,
          reinterpret_cast<unsigned *>(all + static_cast<long long>(places) * each) + place};
}

__device__ inline void leave(const float (&d)[STRIPS][BN / 2], Left to, int consumer) {
  const int thread = threadIdx.x % 128;
#pragma unroll
  for (int r = 0; r < STRIPS; r++) {
#pragma unroll
    for (int i = 0; i < BN / 8; i++) {
      to.sums[(r * (BN / 8) + i) * 128 + thread] =
          make_float4(d[r][4 * i], d[r][4 * i + 1], d[r][4 * i + 2], d[r][4 * i + 3]);
    }
  }
  __threadfence();  // everybody's sums are there before the flag says so
  named_barrier_wait(1 + consumer, 128);
  if (thread == 0) *to.flag = 1;
}

// The sums that were left and mine, added and rounded. Mine stay as they are: sums that threads write in a branch would
// make the compiler wait behind every product.
__device__ inline void add_left(unsigned (&held)[PANELS][16], const float (&d)[STRIPS][BN / 2], Left from,
                                int consumer) {
  const int thread = threadIdx.x % 128;
  if (thread == 0) {
    while (*from.flag == 0) {
    }
    *from.flag = 0;  // for the next grid
    __threadfence();
  }
  named_barrier_wait(1 + consumer, 128);
#pragma unroll
  for (int r = 0; r < STRIPS; r++) {
#pragma unroll
    for (int i = 0; i < BN / 8; i++) {
      const float4 four = __ldcg(from.sums + (r * (BN / 8) + i) * 128 + thread);  // from L2: another block wrote it
      unsigned *to = &held[r * WIDE + i / 8][i % 8 * 2];
      to[0] = rounded_pair<Type>(d[r][4 * i] + four.x, d[r][4 * i + 1] + four.y);
      to[1] = rounded_pair<Type>(d[r][4 * i + 2] + four.z, d[r][4 * i + 3] + four.w);
    }
  }
}
