// The 32 branches. Each is a loop of its own with numbers of its own, so no two can become one: a warp whose lanes
// want several of them must run them one after the other.
#pragma once

constexpr int ROUNDS = 256;
constexpr int TURN = 16;  // rounds between two jumps: many enough that counting and jumping back cost little. Fewer
                          // make the code shorter and, on an H200, nothing quicker: see k02_sorted.cu

template <int BRANCH>
__device__ inline float work(float x) {
  constexpr float a = 1.0f - (BRANCH + 1) / 4096.0f, c = 1.0f / 64.0f;
#pragma unroll 1
  for (int round = 0; round < ROUNDS; round += TURN) {
#pragma unroll
    for (int t = 0; t < TURN; t++) x = fmaf(x, a, c);
  }
  return x;
}

#define BRANCH(w) \
  case w:         \
    return work<w>(x);
#define FOUR(w) BRANCH(w) BRANCH(w + 1) BRANCH(w + 2) BRANCH(w + 3)

__device__ inline float take_branch(int branch, float x) {
  switch (branch) {
    FOUR(0) FOUR(4) FOUR(8) FOUR(12) FOUR(16) FOUR(20) FOUR(24) FOUR(28)
  }
  return x;
}
