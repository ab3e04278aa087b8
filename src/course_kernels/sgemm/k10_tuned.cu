// Matrix multiply, kernel 10: larger tiles.
//
// Contract  problem.py, asynchronous_copy.cuh, vectors.cuh      Launcher  k10_tuned.py
// Idea      the same kernel with other constants, chosen for the card: a register tile of 16 x 8 has twice the
//           multiply-adds for one and a half times the elements read. And three trays instead of two
// Against   k09_asynchronous, whose shape was never chosen
// Cost      more registers, so fewer warps: see the launcher for the shapes and their reasons
// Next      the registers themselves
// Source    NVIDIA CUTLASS, "Efficient GEMM in CUDA"

#include "asynchronous_copy.cuh"
#include "vectors.cuh"

constexpr int BM = BLOCK_M, BN = BLOCK_N, BK = 8;    // block tile, and the step along K
constexpr int WM = WARP_M, WN = WARP_N;              // warp tile
constexpr int TM = REGISTER_M, TN = REGISTER_N;      // register tile, in groups of four rows and of four columns
constexpr int LANES_M = WM / TM, LANES_N = WN / TN;  // how the 32 lanes of a warp stand over its tile
constexpr int THREADS = BM * BN / (TM * TN);
constexpr int STAGES = 3;                            // trays

struct Tray {
  alignas(16) float a[BK][BM + 4];  // [k, m]
  alignas(16) float b[BK][BN];      // [k, n]
};

// Order one step's tiles; GUARD where they may reach past an edge: what lies there arrives as 0.
template <bool VECTORS, bool GUARD>
__device__ inline void fetch(Tray &tray, const float *A, const float *B, int m0, int n0, int k0, int M, int N,
                             int K) {
#pragma unroll
  for (int v = 0; v < BM * BK / THREADS; v++) {
    const int e = threadIdx.x + v * THREADS;
    const long long m = m0 + e / BK;
    const int k = k0 + e % BK;
    const bool inside = !GUARD || (m < M && k < K);
    copy_4_bytes(&tray.a[e % BK][e / BK], inside ? A + m * K + k : A, inside ? 4 : 0);
  }
  constexpr int WIDTH = VECTORS ? 4 : 1;
#pragma unroll
  for (int v = 0; v < BK * BN / THREADS / WIDTH; v++) {
    const int e = (threadIdx.x + v * THREADS) * WIDTH;
    const long long k = k0 + e / BN;
    const int n = n0 + e % BN;
    const bool inside = !GUARD || (k < K && n < N);
    float *to = &tray.b[e / BN][e % BN];
    const float *from = inside ? B + k * N + n : B;
    if (VECTORS) copy_16_bytes(to, from, inside ? 16 : 0);
    else copy_4_bytes(to, from, inside ? 4 : 0);
  }
}

template <bool VECTORS>
__device__ inline void multiply(const float *__restrict__ A, const float *__restrict__ B, float *__restrict__ C, int M,
                                int N, int K) {
  __shared__ Tray trays[STAGES];
  const int m0 = blockIdx.y * BM, n0 = blockIdx.x * BN;
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int row = warp / (BN / WN) * WM + lane / LANES_N * 4;
  const int column = warp % (BN / WN) * WN + lane % LANES_N * 4;
  const bool inner = m0 + BM <= M && n0 + BN <= N;
  // A group is closed for every step, ordered or not: so the youngest STAGES - 2 groups are always the ones to spare.
  auto order = [&](int step) {
    const int k0 = step * BK;
    Tray &tray = trays[step % STAGES];
    if (inner && k0 + BK <= K) fetch<VECTORS, false>(tray, A, B, m0, n0, k0, M, N, K);
    else if (k0 < K) fetch<VECTORS, true>(tray, A, B, m0, n0, k0, M, N, K);
    close_group();
  };

  float sums[TM][TN] = {};
  const int steps = (K + BK - 1) / BK;
#pragma unroll
  for (int step = 0; step < STAGES - 1; step++) order(step);
  for (int step = 0; step < steps; step++) {
    wait_for_all_but<STAGES - 2>();  // my part of this step's tiles is there
    __syncthreads();                 // and everybody's; and all have eaten what the next order overwrites
    order(step + STAGES - 1);
    const Tray &tray = trays[step % STAGES];
#pragma unroll
    for (int i = 0; i < BK; i++) {
      alignas(16) float a[TM], b[TN];
#pragma unroll
      for (int r = 0; r < TM; r += 4) copy_4(&a[r], &tray.a[i][row + r * LANES_M]);
#pragma unroll
      for (int c = 0; c < TN; c += 4) copy_4(&b[c], &tray.b[i][column + c * LANES_N]);
#pragma unroll
      for (int r = 0; r < TM; r++) {
#pragma unroll
        for (int c = 0; c < TN; c++) sums[r][c] += a[r] * b[c];
      }
    }
  }

#pragma unroll
  for (int r = 0; r < TM; r++) {
#pragma unroll
    for (int c = 0; c < TN; c += 4) {
      const long long m = m0 + row + r / 4 * 4 * LANES_M + r % 4;
      const int n = n0 + column + c * LANES_N;
      store_4<VECTORS>(C + m * N + n, m < M ? N - n : 0, {sums[r][c], sums[r][c + 1], sums[r][c + 2], sums[r][c + 3]});
    }
  }
}

// grid: (ceil(N / BN), ceil(M / BM))      block: THREADS
// A [M, K], B [K, N], C [M, N]
extern "C" __global__ void __launch_bounds__(THREADS)
    sgemm_tuned(const float *__restrict__ A, const float *__restrict__ B, float *__restrict__ C, int M, int N, int K) {
  multiply<true>(A, B, C, M, N, K);
}

extern "C" __global__ void __launch_bounds__(THREADS)
    sgemm_any(const float *__restrict__ A, const float *__restrict__ B, float *__restrict__ C, int M, int N, int K) {
  multiply<false>(A, B, C, M, N, K);
}
