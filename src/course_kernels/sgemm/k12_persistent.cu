// Matrix multiply, kernel 12: a tuning bundle. The blocks stay, and share out what the last wave leaves.
//
// Contract  problem.py, asynchronous_copy.cuh, vectors.cuh      Launcher  k12_persistent.py
// Idea      a tuning bundle: four changes at once. (1) One block for each place on the card; as long as there is a
//           tile for every block they take one each. (2) The tiles that are left, too few for all, are laid end to end
//           and cut into equal lengths along K; whoever has a piece of a tile adds it to C. (3) C is alpha times A times
//           B, as BLAS has it: the products are new numbers in new registers, so C is written 16 bytes at a time and the
//           sums stay where they get in nobody's way. (4) The next tiles are ordered right after the barrier
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

// Four neighbours are added to those in C, in one instruction where the card has it; `left` as for store_4.
template <bool VECTORS>
__device__ inline void add_4(float *to, int left, float4 v) {
#if __CUDA_ARCH__ >= 900
  if (VECTORS) {
    if (left > 0) atomicAdd(reinterpret_cast<float4 *>(to), v);
    return;
  }
#endif
  if (left > 0) atomicAdd(to, v.x);
  if (left > 1) atomicAdd(to + 1, v.y);
  if (left > 2) atomicAdd(to + 2, v.z);
  if (left > 3) atomicAdd(to + 3, v.w);
}

// Steps first_step .. end_step of the tile at (m0, n0). A whole tile is stored; a piece is added to what stands in C.
template <bool VECTORS>
__device__ inline void multiply(Tray *trays, const float *__restrict__ A, const float *__restrict__ B,
                                float *__restrict__ C, int M, int N, int K, int m0, int n0, int first_step,
                                int end_step, bool whole, float alpha) {
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int row = warp / (BN / WN) * WM + lane / LANES_N * 4;
  const int column = warp % (BN / WN) * WN + lane % LANES_N * 4;
  const bool inner = m0 + BM <= M && n0 + BN <= N;
  Source from = source<VECTORS>(A, B, m0, n0, first_step * BK, M, N, K);
  // A group is closed for every step, ordered or not: so the youngest STAGES - 2 groups are always the ones to spare.
  auto order = [&](int step) {
    const int k0 = (first_step + step) * BK;
    Tray &tray = trays[step % STAGES];
    if (first_step + step < end_step) {
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
      if (i == 0) order(step + STAGES - 1);  // right after the barrier: that tray has been eaten
      multiply_add(sums, a[i % 2], b[i % 2]);
    }
  }

#pragma unroll
  for (int r = 0; r < TM; r++) {
#pragma unroll
    for (int c = 0; c < TN; c += 4) {
      const long long m = m0 + row + r / 4 * 4 * LANES_M + r % 4;
      const int n = n0 + column + c * LANES_N, left = m < M ? N - n : 0;
      const float4 v = {alpha * sums[r][c], alpha * sums[r][c + 1], alpha * sums[r][c + 2], alpha * sums[r][c + 3]};
      if (whole) store_4<VECTORS>(C + m * N + n, left, v);
      else add_4<VECTORS>(C + m * N + n, left, v);
    }
  }
}

template <bool VECTORS>
__device__ inline void walk(const float *__restrict__ A, const float *__restrict__ B, float *__restrict__ C, int M, int N,
                            int K, float alpha) {
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
    multiply<VECTORS>(trays, A, B, C, M, N, K, tile / tiles_n * BM, tile % tiles_n * BN, first_step, end_step, whole,
                      alpha);
    __syncthreads();  // all have eaten before anything new is ordered
  }
}

// grid: as many blocks as the card holds at once      block: THREADS. The rows of shared tiles come set to 0
// A [M, K], B [K, N], C [M, N]
extern "C" __global__ void __launch_bounds__(THREADS)
    sgemm_persistent(const float *__restrict__ A, const float *__restrict__ B, float *__restrict__ C, int M, int N, int K,
                     float alpha) {
  walk<true>(A, B, C, M, N, K, alpha);
}

extern "C" __global__ void __launch_bounds__(THREADS)
    sgemm_any(const float *__restrict__ A, const float *__restrict__ B, float *__restrict__ C, int M, int N, int K,
              float alpha) {
  walk<false>(A, B, C, M, N, K, alpha);
}
