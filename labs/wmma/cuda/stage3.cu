// Lab wmma: C = A B, 16-bit numbers and 32-bit sums, on tensor cores. launch.py reads BM, BN and WARPS from this file:
// it starts a block of WARPS warps for every tile of BM x BN numbers of C.

#include <cuda_fp16.h>
#include <mma.h>

using namespace nvcuda;

constexpr int F = 16;            // a fragment is F x F numbers, held by a warp together
constexpr int BM = 16, BN = 16;  // the block tile
constexpr int WARPS = 1, THREADS = 32 * WARPS;

using FragmentA = wmma::fragment<wmma::matrix_a, F, F, F, __half, wmma::row_major>;
using FragmentB = wmma::fragment<wmma::matrix_b, F, F, F, __half, wmma::row_major>;
using Sums = wmma::fragment<wmma::accumulator, F, F, F, float>;

// Write F x F sums to C as 16-bit numbers, from row m and column n on, as far as C reaches. All 32 threads help.
__device__ void write(const float *square, __half *C, int m, int n, int M, int N) {
  for (int i = threadIdx.x % 32; i < F * F; i += 32)
    if (m + i / F < M && n + i % F < N) C[static_cast<long long>(m + i / F) * N + n + i % F] = __half(square[i]);
}

extern "C" __global__ void gemm(const __half *A,  // [M, K]
                                const __half *B,  // [K, N]
                                __half *C,        // [M, N]
                                int M, int N, int K) {
  __shared__ __align__(32) float squares[WARPS][F * F];  // room for the sums of every warp
  __shared__ __align__(32) __half a_tile[BM][F], b_tile[F][BN];
  const int m = blockIdx.y * BM, n = blockIdx.x * BN;    // where the block tile begins in C
  FragmentA a;
  FragmentB b;
  Sums sums;
  wmma::fill_fragment(sums, 0.0f);
  for (int k = 0; k < K; k += F) {
    for (int i = threadIdx.x; i < BM * F; i += THREADS) {
      const int y = i / F, x = i % F;  // what does not exist is 0
      a_tile[y][x] = m + y < M && k + x < K ? A[static_cast<long long>(m + y) * K + k + x] : __half(0.0f);
    }
    for (int i = threadIdx.x; i < F * BN; i += THREADS) {
      const int y = i / BN, x = i % BN;
      b_tile[y][x] = k + y < K && n + x < N ? B[static_cast<long long>(k + y) * N + n + x] : __half(0.0f);
    }
    __syncthreads();  // both tiles are whole
    wmma::load_matrix_sync(a, &a_tile[0][0], F);
    wmma::load_matrix_sync(b, &b_tile[0][0], BN);
    wmma::mma_sync(sums, a, b, sums);
    __syncthreads();  // nobody needs them any more
  }
  wmma::store_matrix_sync(squares[0], sums, F, wmma::mem_row_major);
  __syncwarp();
  write(squares[0], C, m, n, M, N);
}
