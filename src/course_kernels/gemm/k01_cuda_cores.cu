// Matrix multiply in 16 bits, kernel 1: the fp32 ladder's warp tiles, without tensor cores.
//
// Contract  problem.py      Launcher  k01_cuda_cores.py      -D TYPE=__nv_bfloat16 or __half, WHOLE=1 or 0
// Idea      the numbers become floats on their way into shared memory; from there on it is sgemm's kernel of warp tiles
// Cost      a multiply and an addition are one instruction of one thread, whatever the inputs' type: 16 bits halve the
//           bytes, and the bytes were not what it waits for
// Limits    16-byte loads need rows at multiples of 16 bytes (WHOLE); else numbers come one by one
// Next      k02_wmma, where one instruction of a warp multiplies 16 x 16 x 16
// Source    S. Boehm 2022, How to optimize a CUDA matmul kernel, kernel 10

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#ifndef TYPE
#define TYPE __nv_bfloat16
#define WHOLE 1
#endif

constexpr int BM = 128, BN = 128, BK = 16;  // block tile: for each thread one vector of A and one of B
constexpr int WM = 32, WN = 64;             // warp tile, of 4 x 8 threads
constexpr int TM = 8, TN = 8;               // register tile: two runs of 4 rows, half a warp tile apart; columns alike
constexpr int THREADS = BM / WM * (BN / WN) * 32;
static_assert(BM * BK / 8 == THREADS && BK * BN / 8 == THREADS, "one vector each");

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
extern "C" __global__ void __launch_bounds__(THREADS, 2)  // two blocks on a multiprocessor hide each other's barriers
    gemm_cuda_cores(const TYPE *__restrict__ A,  // [M, K]
                    const TYPE *__restrict__ B,  // [K, N]
                    TYPE *__restrict__ C,        // [M, N]
                    int M, int N, int K) {
  __shared__ __align__(16) float a_tile[BK][BM + 4];  // turned, so that a thread's rows are neighbours
  __shared__ __align__(16) float b_tile[BK][BN];
  const int tiles_n = (N + BN - 1) / BN;
  const int first_m = blockIdx.x / tiles_n * BM, first_n = blockIdx.x % tiles_n * BN;

  const int a_row = threadIdx.x / (BK / 8), a_column = threadIdx.x % (BK / 8) * 8;
  const int b_row = threadIdx.x / (BN / 8), b_column = threadIdx.x % (BN / 8) * 8;
  const TYPE *a_from = A + static_cast<long long>(first_m + a_row) * K + a_column;
  const TYPE *b_from = B + static_cast<long long>(b_row) * N + first_n + b_column;

  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int my_m = warp / (BN / WN) * WM + lane / 8 * 4;
  const int my_n = warp % (BN / WN) * WN + lane % 8 * 4;
  float sums[TM][TN] = {};

  for (int k0 = 0; k0 < K; k0 += BK) {
    const Vector a_numbers = load(a_from, first_m + a_row < M ? K - k0 - a_column : 0);
    const Vector b_numbers = load(b_from, k0 + b_row < K ? N - first_n - b_column : 0);
    a_from += BK, b_from += static_cast<long long>(BK) * N;
#pragma unroll
    for (int i = 0; i < 8; i++) {
      a_tile[a_column + i][a_row] = static_cast<float>(a_numbers.numbers[i]);
      b_tile[b_row][b_column + i] = static_cast<float>(b_numbers.numbers[i]);
    }
    __syncthreads();  // the tiles are complete

#pragma unroll
    for (int k = 0; k < BK; k++) {
      __align__(16) float a[TM], b[TN];
#pragma unroll
      for (int half = 0; half < 2; half++) {
        *reinterpret_cast<float4 *>(a + half * 4) = *reinterpret_cast<float4 *>(&a_tile[k][my_m + half * WM / 2]);
        *reinterpret_cast<float4 *>(b + half * 4) = *reinterpret_cast<float4 *>(&b_tile[k][my_n + half * WN / 2]);
      }
#pragma unroll
      for (int i = 0; i < TM; i++)
#pragma unroll
        for (int j = 0; j < TN; j++) sums[i][j] += a[i] * b[j];
    }
    __syncthreads();  // nobody reads the tiles any more
  }

#pragma unroll
  for (int i = 0; i < TM; i++) {
#pragma unroll
    for (int j = 0; j < TN; j++) {
      const int m = first_m + my_m + i / 4 * (WM / 2) + i % 4, n = first_n + my_n + j / 4 * (WN / 2) + j % 4;
      if (m < M && n < N) C[static_cast<long long>(m) * N + n] = TYPE(sums[i][j]);
    }
  }
}
