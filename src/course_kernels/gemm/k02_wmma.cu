// Matrix multiply on tensor cores, kernel 2: a warp multiplies 16 x 16 x 16 numbers with one call.
//
// Contract  problem.py      Launcher  k02_wmma.py      -D TYPE=__nv_bfloat16 or __half, WHOLE=1 or 0
// Idea      a fragment is a 16 x 16 matrix that the 32 threads of a warp hold together, and mma_sync multiplies two of
//           them. Which thread holds which number is the compiler's affair
// Against   k01_cuda_cores, whose threads multiply one pair of numbers at a time: the same block tiles and warp tiles
// Cost      a warp waits for its tile, then for its fragments, then multiplies: until then the tensor cores stand still
// Limits    16-byte loads need rows at multiples of 16 bytes (WHOLE); else numbers come one by one
// Next      k03_mma_sync, which has the next tile and the next fragments on their way while it multiplies
// Source    CUDA C++ Programming Guide, Warp Matrix Functions

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <mma.h>

using namespace nvcuda;

#ifndef TYPE
#define TYPE __nv_bfloat16
#define WHOLE 1
#endif

constexpr int BM = 128, BN = 128, BK = 32;  // block tile
constexpr int WM = 32, WN = 64;             // warp tile: 2 x 4 fragments of sums
constexpr int F = 16;                       // a fragment is F x F numbers
constexpr int WARPS = BM / WM * (BN / WN), THREADS = WARPS * 32;
constexpr int PAD = 8;  // rows of a tile are 16 bytes longer: then eight of them begin in different banks

struct alignas(16) Vector {
  TYPE numbers[8];
};

// Eight neighbours of a row, `left` of them inside the matrix; zeros past its end.
__device__ inline Vector load(const TYPE *from, int left) {
  if (WHOLE) return left > 0 ? *reinterpret_cast<const Vector *>(from) : Vector{};
  Vector v;
  for (int i = 0; i < 8; i++) v.numbers[i] = i < left ? from[i] : TYPE(0.0f);
  return v;
}

// grid: ceil(M / BM) * ceil(N / BN)      block: THREADS
extern "C" __global__ void __launch_bounds__(THREADS, 2)  // two blocks on a multiprocessor: one multiplies, one waits
    gemm_wmma(const TYPE *__restrict__ A,  // [M, K]
              const TYPE *__restrict__ B,  // [K, N]
              TYPE *__restrict__ C,        // [M, N]
              int M, int N, int K) {
  __shared__ __align__(32) TYPE a_tile[BM][BK + PAD];
  __shared__ __align__(32) TYPE b_tile[BK][BN + PAD];
  __shared__ __align__(32) float squares[WARPS][F][F];
  const int tiles_n = (N + BN - 1) / BN;
  const int first_m = blockIdx.x / tiles_n * BM, first_n = blockIdx.x % tiles_n * BN;
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int warp_m = warp / (BN / WN) * WM, warp_n = warp % (BN / WN) * WN;

  wmma::fragment<wmma::accumulator, F, F, F, float> sums[WM / F][WN / F];
  for (auto &row : sums)
    for (auto &sum : row) wmma::fill_fragment(sum, 0.0f);

  for (int k0 = 0; k0 < K; k0 += BK) {
    // region tiles
#pragma unroll
    for (int i = 0; i < BM * BK / 8 / THREADS; i++) {
      const int v = threadIdx.x + i * THREADS, row = v / (BK / 8), column = v % (BK / 8) * 8, m = first_m + row;
      *reinterpret_cast<Vector *>(&a_tile[row][column]) =
          load(A + static_cast<long long>(m) * K + k0 + column, m < M ? K - k0 - column : 0);
    }
#pragma unroll
    for (int i = 0; i < BK * BN / 8 / THREADS; i++) {
      const int v = threadIdx.x + i * THREADS, row = v / (BN / 8), column = v % (BN / 8) * 8, k = k0 + row;
      *reinterpret_cast<Vector *>(&b_tile[row][column]) =
          load(B + static_cast<long long>(k) * N + first_n + column, k < K ? N - first_n - column : 0);
    }
    __syncthreads();  // the tiles are complete
    // endregion

    // region multiply
#pragma unroll
    for (int k = 0; k < BK; k += F) {
      wmma::fragment<wmma::matrix_a, F, F, F, TYPE, wmma::row_major> a[WM / F];
      wmma::fragment<wmma::matrix_b, F, F, F, TYPE, wmma::row_major> b[WN / F];
      for (int i = 0; i < WM / F; i++) wmma::load_matrix_sync(a[i], &a_tile[warp_m + i * F][k], BK + PAD);
      for (int j = 0; j < WN / F; j++) wmma::load_matrix_sync(b[j], &b_tile[k][warp_n + j * F], BN + PAD);
      for (int i = 0; i < WM / F; i++)
        for (int j = 0; j < WN / F; j++) wmma::mma_sync(sums[i][j], a[i], b[j], sums[i][j]);
    }
    __syncthreads();  // nobody reads the tiles any more
    // endregion
  }

  // region store
  // Nobody says where in a fragment a sum lies: only in shared memory has each a known place.
  float(&square)[F][F] = squares[warp];
#pragma unroll
  for (int i = 0; i < WM / F; i++) {
#pragma unroll
    for (int j = 0; j < WN / F; j++) {
      wmma::store_matrix_sync(&square[0][0], sums[i][j], F, wmma::mem_row_major);
      __syncwarp();
#pragma unroll
      for (int p = 0; p < F * F / 32; p++) {
        const int e = lane + p * 32, m = first_m + warp_m + i * F + e / F, n = first_n + warp_n + j * F + e % F;
        if (m < M && n < N) C[static_cast<long long>(m) * N + n] = TYPE(square[e / F][e % F]);
      }
      __syncwarp();  // the square may be written again
    }
  }
  // endregion
}
