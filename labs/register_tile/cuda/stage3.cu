// Lab register_tile: C = A B in fp32, several numbers of C to a thread. launch.py reads BM, BN, TM and TN from this
// file: it starts a block for every tile of BM x BN numbers of C, with a thread for every TM x TN of them.

constexpr int BM = 64, BN = 64, BK = 8;  // the block tile, and how many k it takes at a time
constexpr int TM = 8, TN = 1;            // the register tile: rows and columns of C that one thread owns
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
  const int row = t / BN * TM, column = t % BN;  // within the tile: my first row, and my column
  float sums[TM] = {};

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
      const float of_b = b[k][column];  // read once, used TM times
      for (int i = 0; i < TM; i++) sums[i] += a[row + i][k] * of_b;
    }
    __syncthreads();  // nobody needs them any more
  }
  for (int i = 0; i < TM; i++)
    if (m + row + i < M && n + column < N)  // the last tiles reach past two edges
      C[(m + row + i) * N + n + column] = sums[i];
}
