// Matrix multiply, kernel 12: the blocks stay, and share out what the last wave leaves.
//
// Contract  problem.py, asynchronous_copy.cuh, vectors.cuh      Launcher  k12_persistent.py
// Idea      one block for each place on the card. As long as there is a tile for every block they take one each; the
//           tiles that are left, too few for all, are laid end to end and cut into equal lengths along K. Whoever has a
//           piece of a tile adds it to C
// Against   k11_register_banks: in the last wave of tiles some SMs have nothing to do
// Cost      the rows of the shared tiles are set to 0 first, and a shared tile is added to C two or more times
// Limits    the order in which pieces are added is not fixed, so the last bits may differ from run to run
// Source    Osama et al. 2023, Stream-K: work-centric parallel decomposition for dense matrix-matrix multiplication

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

// Steps first_step .. end_step of the tile at (m0, n0). A whole tile is stored; a piece is added to what stands in C.
template <bool VECTORS>
__device__ inline void multiply(Tray *trays, const float *__restrict__ A, const float *__restrict__ B,
                                float *__restrict__ C, int M, int N, int K, int m0, int n0, int first_step,
                                int end_step, bool whole) {
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int row = warp / (BN / WN) * WM + lane / LANES_N * 4;
  const int column = warp % (BN / WN) * WN + lane % LANES_N * 4;
  const bool inner = m0 + BM <= M && n0 + BN <= N;
  // A group is closed for every step, ordered or not: so the youngest STAGES - 2 groups are always the ones to spare.
  auto order = [&](int step) {
    const int k0 = (first_step + step) * BK;
    Tray &tray = trays[step % STAGES];
    if (first_step + step < end_step) {
      if (inner && k0 + BK <= K) fetch<VECTORS, false>(tray, A, B, m0, n0, k0, M, N, K);
      else fetch<VECTORS, true>(tray, A, B, m0, n0, k0, M, N, K);
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
  const int steps = end_step - first_step;
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
      if (m >= M || n >= N) continue;
      if (whole) C[m * N + n] = sums[r][c];
      else atomicAdd(&C[m * N + n], sums[r][c]);
    }
  }
}

template <bool VECTORS>
__device__ inline void walk(const float *__restrict__ A, const float *__restrict__ B, float *__restrict__ C, int M, int N,
                            int K) {
  __shared__ Tray trays[STAGES];
  const int blocks = gridDim.x, block = blockIdx.x;
  const int tiles_n = (N + BN - 1) / BN, steps = (K + BK - 1) / BK;
  const int tiles = (M + BM - 1) / BM * tiles_n;
  const int rounds = tiles / blocks;  // in which there is a tile for every block
  const long long left = static_cast<long long>(tiles % blocks) * steps;
  long long from = left * block / blocks;
  int round = 0;
  while (true) {
    int tile = round * blocks + block, first_step = 0, end_step = steps;
    const bool whole = round < rounds;
    if (whole) {
      round++;
    } else {
      const long long to = left * (block + 1) / blocks;
      if (from >= to) return;
      tile = rounds * blocks + from / steps;
      first_step = from % steps;
      end_step = min(static_cast<long long>(steps), first_step + to - from);
      from += end_step - first_step;
    }
    multiply<VECTORS>(trays, A, B, C, M, N, K, tile / tiles_n * BM, tile % tiles_n * BN, first_step, end_step, whole);
    __syncthreads();  // all have eaten before anything new is ordered
  }
}

// grid: as many blocks as the card holds at once      block: THREADS. The rows of shared tiles come set to 0
// A [M, K], B [K, N], C [M, N]
extern "C" __global__ void __launch_bounds__(THREADS)
    sgemm_persistent(const float *__restrict__ A, const float *__restrict__ B, float *__restrict__ C, int M, int N, int K) {
  walk<true>(A, B, C, M, N, K);
}

extern "C" __global__ void __launch_bounds__(THREADS)
    sgemm_any(const float *__restrict__ A, const float *__restrict__ B, float *__restrict__ C, int M, int N, int K) {
  walk<false>(A, B, C, M, N, K);
}
