// Matrix multiply for AMD's matrix cores, in HIP: a wave of 64 threads takes the place of a warp of 32.
//
// Contract  ../../course_kernels/gemm/problem.py, bfloat16; K and N multiples of 8
// Idea      the block tile of k02_wmma.cu; but who holds which number of a fragment is written out, and a thread reads
//           its neighbours along K in one piece: B lies turned in shared memory (LDS)
// Against   ../../course_kernels/gemm/k02_wmma.cu, where 32 threads hold a fragment and the compiler says how
// Limits    a wave waits for its tile before it multiplies; the numbers of B are stored one by one as they are turned
// Source    A. Salykov et al. 2025, Introduction to Matrix Core Programming on AMD CDNA3 and CDNA4 architecture

#include "matrix_core.h"

constexpr int BM = 128, BN = 128, BK = 32;  // block tile
constexpr int WM = 64, WN = 64;             // tile of a wave: 4 x 4 squares of sums
constexpr int F = 16;                       // a square is F x F numbers
constexpr int THREADS = BM / WM * (BN / WN) * WAVE;
constexpr int PAD = 8;  // rows of a tile are 16 bytes longer: neighbours begin in different banks

struct alignas(16) Vector {
  __bf16 numbers[8];
};

// Eight neighbours of a row, or zeros past its end.
__device__ inline Vector load(const __bf16 *from, bool inside) {
  return inside ? *reinterpret_cast<const Vector *>(from) : Vector{};
}

// grid: ceil(M / BM) * ceil(N / BN)      block: THREADS
extern "C" __global__ void __launch_bounds__(THREADS)
    gemm_hip(const __bf16 *__restrict__ A,  // [M, K]
             const __bf16 *__restrict__ B,  // [K, N]
             __bf16 *__restrict__ C,        // [M, N]
             int M, int N, int K) {
  __shared__ __align__(16) __bf16 a_tile[BM][BK + PAD], b_tile[BN][BK + PAD];
  const int thread = threadIdx.x, tiles_n = (N + BN - 1) / BN;
  const int first_m = blockIdx.x / tiles_n * BM, first_n = blockIdx.x % tiles_n * BN;
  const int wave = thread / WAVE, lane = thread % WAVE;
  const int wave_m = wave / (BN / WN) * WM, wave_n = wave % (BN / WN) * WN;

  Sums sums[WM / F][WN / F] = {};
  for (int k0 = 0; k0 < K; k0 += BK) {
    // region tiles
#pragma unroll
    for (int v = thread; v < BM * BK / 8; v += THREADS) {
      const int row = v / (BK / 8), column = v % (BK / 8) * 8, m = first_m + row;
      *reinterpret_cast<Vector *>(&a_tile[row][column]) =
          load(A + static_cast<long long>(m) * K + k0 + column, m < M && k0 + column < K);
    }
#pragma unroll
    for (int v = thread; v < BK * BN / 8; v += THREADS) {
      const int row = v / (BN / 8), column = v % (BN / 8) * 8, n = first_n + column;
      const Vector numbers = load(B + static_cast<long long>(k0 + row) * N + n, k0 + row < K && n < N);
      for (int i = 0; i < 8; i++) b_tile[column + i][row] = numbers.numbers[i];
    }
    __syncthreads();  // the tiles are complete
    // endregion

    // region multiply
#pragma unroll
    for (int k = 0; k < BK; k += K_STEP) {
      const int mine = k + lane / F * HELD;
      Held a[WM / F], b[WN / F];
#pragma unroll
      for (int i = 0; i < WM / F; i++) a[i] = *reinterpret_cast<Held *>(&a_tile[wave_m + i * F + lane % F][mine]);
#pragma unroll
      for (int j = 0; j < WN / F; j++) b[j] = *reinterpret_cast<Held *>(&b_tile[wave_n + j * F + lane % F][mine]);
#pragma unroll
      for (int i = 0; i < WM / F; i++)
#pragma unroll
        for (int j = 0; j < WN / F; j++) sums[i][j] = multiply(a[i], b[j], sums[i][j]);
    }
    __syncthreads();  // nobody reads the tiles any more
    // endregion
  }

  // region store
#pragma unroll
  for (int i = 0; i < WM / F; i++) {
#pragma unroll
    for (int j = 0; j < WN / F; j++) {
#pragma unroll
      for (int e = 0; e < 4; e++) {
        const int m = first_m + wave_m + i * F + lane / F * 4 + e, n = first_n + wave_n + j * F + lane % F;
        if (m < M && n < N) C[static_cast<long long>(m) * N + n] = static_cast<__bf16>(sums[i][j][e]);
      }
    }
  }
  // endregion
}
