// Lab register_tile: C = A B in fp32, several numbers of C to a thread. launch.py reads BM, BN, TM and TN from this
// file: it starts a block for every tile of BM x BN numbers of C, with a thread for every TM x TN of them.

constexpr int BM = 128, BN = 128, BK = 8;  // the block tile, and how many k it takes at a time
constexpr int TM = 8, TN = 8;              // the register tile: rows and columns of C that one thread owns
constexpr int THREADS = (BM / TM) * (BN / TN);

// Predict on paper. A multiply-add takes a number of A and a number of B. A thread keeps what it has read
// for one k until the next k. How many numbers does it read from shared memory for 64 multiply-adds, if it owns
constexpr int ONE = 128;    // one number of C?
constexpr int COLUMN = 72;  // a column of 8?
constexpr int SQUARE = 16;  // a square of 8 x 8?
static_assert(7 * ONE + 5 * COLUMN + 3 * SQUARE == 1304, "predict first: the three numbers, on paper");

extern "C" __global__ void __launch_bounds__(THREADS) sgemm(const float *A,  // [M, K]
                                                            const float *B,  // [K, N]
                                                            float *C,        // [M, N]
                                                            int M, int N, int K) {
  __shared__ float a[BM][BK], b[BK][BN];
  const int t = threadIdx.x;
  const long long m = blockIdx.y * BM, n = blockIdx.x * BN;  // where the tile begins in C
  const int row = t / (BN / TN) * TM, column = t % (BN / TN) * TN;  // within the tile: where mine begins
  float sums[TM][TN] = {};

  for (int first = 0; first < K; first += BK) {
    for (int i = t; i < BM * BK; i += THREADS) {
      const int y = i / BK, x = i % BK;
      a[y][x] = m + y < M && first + x < K ? A[(m + y) * K + first + x] : 0.0f;
    }
    for (int i = t; i < BK * BN; i += THREADS) {
      const int y = i / BN, x = i % BN;
      b[y][x] = first + y < K && n + x < N ? B[static_cast<long long>(first + y) * N + n + x] : 0.0f;
    }
    __syncthreads();  // both tiles are whole
    for (int k = 0; k < BK; k++) {
      float of_a[TM], of_b[TN];
      for (int i = 0; i < TM; i++) of_a[i] = a[row + i][k];     // read once, used TN times
      for (int j = 0; j < TN; j++) of_b[j] = b[k][column + j];  // read once, used TM times
      for (int i = 0; i < TM; i++)
        for (int j = 0; j < TN; j++) sums[i][j] += of_a[i] * of_b[j];
    }
    __syncthreads();  // nobody needs them any more
  }
  for (int i = 0; i < TM; i++)
    for (int j = 0; j < TN; j++)
      if (m + row + i < M && n + column + j < N)  // the last tiles reach past two edges
        C[(m + row + i) * N + n + column + j] = sums[i][j];
}

// The same with complex numbers: x is the real part, y the other.
__device__ void add_product(float2 a, float2 b, float &real, float &imaginary) {
  real += a.x * b.x;
  real -= a.y * b.y;
  imaginary += a.x * b.y;
  imaginary += a.y * b.x;
}

extern "C" __global__ void __launch_bounds__(THREADS) complex_product(const float2 *A, const float2 *B, float2 *C,
                                                                      int M, int N, int K) {
  __shared__ float2 a[BM][BK], b[BK][BN];
  const int t = threadIdx.x;
  const long long m = blockIdx.y * BM, n = blockIdx.x * BN;  // where the tile begins in C
  const int row = t / (BN / TN) * TM, column = t % (BN / TN) * TN;  // within the tile: where mine begins
  float real[TM][TN] = {}, imaginary[TM][TN] = {};

  for (int first = 0; first < K; first += BK) {
    for (int i = t; i < BM * BK; i += THREADS) {
      const int y = i / BK, x = i % BK;
      a[y][x] = m + y < M && first + x < K ? A[(m + y) * K + first + x] : make_float2(0.0f, 0.0f);
    }
    for (int i = t; i < BK * BN; i += THREADS) {
      const int y = i / BN, x = i % BN;
      b[y][x] = first + y < K && n + x < N ? B[static_cast<long long>(first + y) * N + n + x] : make_float2(0.0f, 0.0f);
    }
    __syncthreads();  // both tiles are whole
    for (int k = 0; k < BK; k++) {
      float2 of_a[TM], of_b[TN];
      for (int i = 0; i < TM; i++) of_a[i] = a[row + i][k];     // two numbers, used 2 * TN times
      for (int j = 0; j < TN; j++) of_b[j] = b[k][column + j];  // two numbers, used 2 * TM times
      for (int i = 0; i < TM; i++)
        for (int j = 0; j < TN; j++) add_product(of_a[i], of_b[j], real[i][j], imaginary[i][j]);
    }
    __syncthreads();  // nobody needs them any more
  }
  for (int i = 0; i < TM; i++)
    for (int j = 0; j < TN; j++)
      if (m + row + i < M && n + column + j < N)  // the last tiles reach past two edges
        C[(m + row + i) * N + n + column + j] = make_float2(real[i][j], imaginary[i][j]);
}
