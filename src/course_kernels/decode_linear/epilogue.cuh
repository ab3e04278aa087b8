// What stands behind a product, for all kernels of this folder: the residual, the gate, or the turn of queries and keys.
//
// Contract  macros: FLOAT16, BEHIND, and HEAD, numbers of a head. A tile is twice APART rows of weights, and one thread
//           holds the sums of its rows p and p + APART, which meet here: of NOTHING and ADD these are neighbours' sums, of
//           GATE a row of the gate and that of up, of ROPE the two numbers that turn together
#pragma once

#include "hopper/warpgroup.cuh"

enum { NOTHING, ADD, GATE, ROPE };
#if FLOAT16
using Type = F16x16;
#else
using Type = Bf16x16;
#endif
using Narrow = unsigned short;

__device__ inline Narrow narrow(float x) { return static_cast<Narrow>(rounded_pair<Type>(x, 0.0f)); }
__device__ inline float wide(Narrow x) { return unpacked<Type>(x, false); }

struct Behind {
  const Narrow *residual;     // ADD: [M, N], may be y
  const float *cos, *sin;     // ROPE: [M, HEAD / 2]
  const long long *position;  // ROPE: [M]
  Narrow *k_cache, *v_cache;  // ROPE: [M, KV, room, HEAD]
  int room, N, H, KV;         // N: columns of y; ROPE: of queries
};

// Two sums of a tile, its rows p and p + APART, and one row of x.
template <int APART>
__device__ inline void finish(const Behind &to, Narrow *y, int tile, int p, int m, float low, float high) {
  const int pair = tile * APART + p;  // of all tiles
  if (BEHIND == GATE) {
    if (pair < to.N) y[static_cast<long long>(m) * to.N + pair] = narrow(low / (1.0f + power_of_2(-1.44269504f * low)) * high);
    return;
  }
  if (BEHIND == ROPE) {
    constexpr int PAIRS = HEAD / 2;
    const int head = pair / PAIRS, i = pair % PAIRS;
    if (head >= to.H + 2 * to.KV) return;
    const bool is_value = head >= to.H + to.KV;
    const float c = is_value ? 1 : to.cos[m * PAIRS + i], s = is_value ? 0 : to.sin[m * PAIRS + i];
    Narrow *place = y + (static_cast<long long>(m) * to.H + head) * HEAD;
    if (head >= to.H) {
      const long long position = to.position[m];
      if (position < 0 || position >= to.room) return;  // the host does not look at it
      Narrow *cache = is_value ? to.v_cache : to.k_cache;
      place = cache + ((static_cast<long long>(m) * to.KV + (head - to.H) % to.KV) * to.room + position) * HEAD;
    }
    place[i] = narrow(low * c - high * s);
    place[i + PAIRS] = narrow(high * c + low * s);
    return;
  }
  const int n = tile * 2 * APART + p;
  const bool are_there[] = {n < to.N, n + APART < to.N};
  const long long at = static_cast<long long>(m) * to.N + n;
  if (BEHIND == ADD) {  // both are read before one is written: y may lie there, too
    if (are_there[0]) low += wide(to.residual[at]);
    if (are_there[1]) high += wide(to.residual[at + APART]);
  }
  if (are_there[0]) y[at] = narrow(low);
  if (are_there[1]) y[at + APART] = narrow(high);
}
