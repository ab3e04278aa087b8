// Softmax, kernel 1: one warp owns one row of any length.
//
// Contract  problem.py      Launcher  k01_online.py      Step  merge.cuh
// Idea      maximum and sum are found in one pass: when the maximum grows, the sum so far is rescaled
// Against   three passes, for the maximum, for the sum, for the answer
// Cost      x is read twice (once for m and l, once for y), y is written once
// Source    Milakov & Gimelshein 2018, arXiv:1805.02867, algorithm 3
#include "merge.cuh"

constexpr int WARP = 32;
constexpr unsigned ALL_LANES = 0xffffffffu;

// grid: ceil(M / (blockDim.x / WARP))      block: a multiple of WARP threads
extern "C" __global__ void softmax_online(const float *__restrict__ x,  // [M, N]
                                          float *__restrict__ y,        // [M, N]
                                          int M, int N) {
  const int lane = threadIdx.x % WARP;
  const int row = blockIdx.x * (blockDim.x / WARP) + threadIdx.x / WARP;
  if (row >= M) return;  // the whole warp leaves together, so the shuffles below stay complete
  x += static_cast<long long>(row) * N;
  y += static_cast<long long>(row) * N;

  // Each lane sums up its own part of the row. Neighbouring lanes read neighbouring columns.
  float m = LOWEST, l = 0.0f;
  for (int n = lane; n < N; n += WARP) merge(m, l, x[n], 1.0f);

  // 32 parts, then 16, 8, 4, 2, 1: merge with a partner five times, and every lane has the whole row's m and l.
  for (int step = WARP / 2; step > 0; step /= 2) {
    const float m_other = __shfl_xor_sync(ALL_LANES, m, step);
    const float l_other = __shfl_xor_sync(ALL_LANES, l, step);
    merge(m, l, m_other, l_other);
  }

  for (int n = lane; n < N; n += WARP) y[n] = expf(x[n] - m) / l;
}
