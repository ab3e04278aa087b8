// Lab sgemm_tiles: C = A B in fp32. launch.py calls this kernel with one block of 32 x 32 threads for every tile of
// 32 x 32 numbers of C: blockIdx.x counts tiles along a row of C, blockIdx.y down a column.

constexpr int TILE = 32;

extern "C" __global__ void sgemm(const float *A,  // [M, K]
                                 const float *B,  // [K, N]
                                 float *C,        // [M, N]
                                 int M, int N, int K) {
  __shared__ float a[TILE][TILE], b[TILE][TILE];
  const int x = threadIdx.x, y = threadIdx.y;
  const long long m = blockIdx.y * TILE + y;
  const int n = blockIdx.x * TILE + x;  // neighbours stand side by side in a row of B and of C
  float sum = 0.0f;
  for (int first = 0; first < K; first += TILE) {  // the next tile of A to the right, the next tile of B below
    a[y][x] = m < M && first + x < K ? A[m * K + first + x] : 0.0f;
    b[y][x] = n < N && first + y < K ? B[static_cast<long long>(first + y) * N + n] : 0.0f;
    __syncthreads();  // both tiles are whole
    for (int k = 0; k < TILE; k++) sum += a[y][k] * b[k][x];
    __syncthreads();  // nobody needs them any more
  }
  if (m < M && n < N) C[m * N + n] = sum;  // the last blocks reach past two edges
}

// T = A A^T on and below the diagonal, and 0 above it.
extern "C" __global__ void row_products(const float *A,  // [M, K]
                                        float *T,        // [M, M]
                                        int M, int K) {
  __shared__ float here[TILE][TILE], there[TILE][TILE + 1];  // one word more: what is read down a column is spread out
  const int x = threadIdx.x, y = threadIdx.y;
  const long long m = blockIdx.y * TILE + y;
  const int n = blockIdx.x * TILE + x;
  const long long other = blockIdx.x * TILE + y;  // the row that this thread brings for the columns of T
  float sum = 0.0f;
  if (blockIdx.x <= blockIdx.y) {  // the whole block is on one side: nobody waits at a barrier alone
    for (int first = 0; first < K; first += TILE) {  // both tiles walk to the right
      here[y][x] = m < M && first + x < K ? A[m * K + first + x] : 0.0f;
      there[y][x] = other < M && first + x < K ? A[other * K + first + x] : 0.0f;
      __syncthreads();  // both tiles are whole
      for (int k = 0; k < TILE; k++) sum += here[y][k] * there[x][k];
      __syncthreads();  // nobody needs them any more
    }
  }
  if (m < M && n < M) T[m * M + n] = n <= m ? sum : 0.0f;
}
