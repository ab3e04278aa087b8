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
  const int m = blockIdx.y * BM, n = blockIdx.x * BN;    // where the block tile begins in C
  // your lines go here
}
