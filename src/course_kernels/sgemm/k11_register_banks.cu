// Matrix multiply, kernel 11: the registers are kept busy, and out of each other's way.
//
// Contract  problem.py, asynchronous_copy.cuh, vectors.cuh      Launcher  k11_register_banks.py
// Idea      a multiply-add reads three registers, and the register file has two banks: the registers with even numbers
//           and those with odd ones. All three from one bank cost a turn more. C is stored element by element here, so
//           the compiler may put the sums where they get in nobody's way; the multiply-adds go along the rows of the
//           register tile, there and back, so one operand of each is still at hand from the one before; and the next
//           elements are read from shared memory while these are multiplied, across the barrier too
// Against   k10_tuned: its 16-byte stores want four neighbouring registers, and so put sums[r][c] in the bank of b[c]
// Cost      four times the store instructions, once, at the end
// Next      the last wave
// Source    ours; banks and reuse of operands: S. Gray, SGEMM, the maxas project's wiki

#include "asynchronous_copy.cuh"
#include "vectors.cuh"

constexpr int BM = BLOCK_M, BN = BLOCK_N, BK = 8;    // block tile, and the step along K
constexpr int WM = WARP_M, WN = WARP_N;              // warp tile
constexpr int TM = REGISTER_M, TN = REGISTER_N;      // register tile, in groups of four rows and of four columns
constexpr int LANES_M = WM / TM, LANES_N = WN / TN;  // how the 32 lanes of a warp stand over its tile
constexpr int THREADS = BM * BN / (TM * TN);
constexpr int STAGES = 2;                            // trays

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

// Row by row, there and back: at each turn the element of B stays at hand, all along a row the element of A.
__device__ inline void multiply_add(float (&sums)[TM][TN], const float (&a)[TM], const float (&b)[TN]) {
#pragma unroll
  for (int r = 0; r < TM; r++) {
#pragma unroll
    for (int i = 0; i < TN; i++) {
      const int c = r % 2 ? TN - 1 - i : i;
      sums[r][c] += a[r] * b[c];
    }
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

  alignas(16) float a[2][TM], b[2][TN];  // what is multiplied, and what comes next
  auto take = [&](const Tray &tray, int i) {
#pragma unroll
    for (int r = 0; r < TM; r += 4) copy_4(&a[i % 2][r], &tray.a[i][row + r * LANES_M]);
#pragma unroll
    for (int c = 0; c < TN; c += 4) copy_4(&b[i % 2][c], &tray.b[i][column + c * LANES_N]);
  };

  float sums[TM][TN] = {};
  const int steps = (K + BK - 1) / BK;
#pragma unroll
  for (int step = 0; step < STAGES - 1; step++) order(step);
  wait_for_all_but<STAGES - 2>();
  __syncthreads();
  take(trays[0], 0);
  for (int step = 0; step < steps; step++) {
#pragma unroll
    for (int i = 0; i < BK; i++) {
      if (i + 1 < BK) {
        take(trays[step % STAGES], i + 1);
      } else {
        wait_for_all_but<STAGES - 2>();
        __syncthreads();
        take(trays[(step + 1) % STAGES], 0);  // after the last step nobody multiplies these
      }
      if (i == 1) order(step + STAGES - 1);  // a multiply_add after the barrier, where everybody is busy again
      multiply_add(sums, a[i % 2], b[i % 2]);
    }
  }

#pragma unroll
  for (int r = 0; r < TM; r++) {
#pragma unroll
    for (int c = 0; c < TN; c++) {
      const long long m = m0 + row + r / 4 * 4 * LANES_M + r % 4;
      const int n = n0 + column + c / 4 * 4 * LANES_N + c % 4;
      if (m < M && n < N) C[m * N + n] = sums[r][c];
    }
  }
}

// grid: (ceil(N / BN), ceil(M / BM))      block: THREADS
// A [M, K], B [K, N], C [M, N]
extern "C" __global__ void __launch_bounds__(THREADS)
    sgemm_register_banks(const float *__restrict__ A, const float *__restrict__ B, float *__restrict__ C, int M, int N, int K) {
  multiply<true>(A, B, C, M, N, K);
}

extern "C" __global__ void __launch_bounds__(THREADS)
    sgemm_any(const float *__restrict__ A, const float *__restrict__ B, float *__restrict__ C, int M, int N, int K) {
  multiply<false>(A, B, C, M, N, K);
}
