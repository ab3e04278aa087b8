// Matrix multiply, kernel 11: a tuning bundle, so that the registers are kept busy, and out of each other's way.
//
// Contract  problem.py, asynchronous_copy.cuh, vectors.cuh      Launcher  k11_register_banks.py
// Idea      a tuning bundle: five changes at once. A multiply-add reads three registers, and the register file has two
//           banks: the registers with even numbers and those with odd ones. All three from one bank cost a turn more.
//           (1) C is stored element by element here, so the compiler may put the sums where they get in nobody's way.
//           (2) The multiply-adds go along the rows of the register tile, there and back, so one operand of each is
//           still at hand from the one before. (3) The next elements are read from shared memory while these are
//           multiplied, across the barrier too. (4) Each thread walks along A and B with two pointers, instead of
//           working out an address for every copy. (5) Two trays, not three
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

// Where this thread's next elements of A and of B lie, and how many rows and columns are left from there on.
struct Source {
  const float *a, *b;
  int a_rows, a_columns, b_rows, b_columns;
};

template <bool VECTORS>
__device__ inline Source source(const float *A, const float *B, int m0, int n0, int k0, int M, int N, int K) {
  constexpr int WIDTH = VECTORS ? 4 : 1;
  const int m = m0 + threadIdx.x / BK, a_k = k0 + threadIdx.x % BK;
  const int n = n0 + threadIdx.x * WIDTH % BN, b_k = k0 + threadIdx.x * WIDTH / BN;
  return {A + static_cast<long long>(m) * K + a_k, B + static_cast<long long>(b_k) * N + n, M - m, K - a_k, K - b_k,
          N - n};
}

// Order one step's tiles and go on to the next; GUARD where they may reach past an edge: what lies there arrives as 0.
template <bool VECTORS, bool GUARD>
__device__ inline void fetch(Tray &tray, Source &from, int N, int K) {
  constexpr int WIDTH = VECTORS ? 4 : 1;
  constexpr int A_ROWS = THREADS / BK, B_ROWS = THREADS * WIDTH / BN;  // that all threads copy at once
#pragma unroll
  for (int v = 0; v < BM / A_ROWS; v++) {
    const bool inside = !GUARD || (v * A_ROWS < from.a_rows && from.a_columns > 0);
    float *to = &tray.a[threadIdx.x % BK][threadIdx.x / BK + v * A_ROWS];
    copy_4_bytes(to, from.a + static_cast<long long>(v * A_ROWS) * K, inside ? 4 : 0);
  }
#pragma unroll
  for (int v = 0; v < BK / B_ROWS; v++) {
    const bool inside = !GUARD || (v * B_ROWS < from.b_rows && from.b_columns > 0);
    float *to = &tray.b[threadIdx.x * WIDTH / BN + v * B_ROWS][threadIdx.x * WIDTH % BN];
    const float *b = from.b + static_cast<long long>(v * B_ROWS) * N;
    if (VECTORS) copy_16_bytes(to, b, inside ? 16 : 0);
    else copy_4_bytes(to, b, inside ? 4 : 0);
  }
  from.a += BK;
  from.b += static_cast<long long>(BK) * N;
  from.a_columns -= BK;
  from.b_rows -= BK;
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
  Source from = source<VECTORS>(A, B, m0, n0, 0, M, N, K);
  // A group is closed for every step, ordered or not: so the youngest STAGES - 2 groups are always the ones to spare.
  auto order = [&](int step) {
    const int k0 = step * BK;
    Tray &tray = trays[step % STAGES];
    if (k0 < K) {
      if (inner && k0 + BK <= K) fetch<VECTORS, false>(tray, from, N, K);
      else fetch<VECTORS, true>(tray, from, N, K);
    }
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
