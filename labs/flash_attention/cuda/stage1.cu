// Lab flash_attention: O = softmax(Q K^T / sqrt(D)) V in fp32, one tile of scores at a time. launch.py starts a block
// of BLOCK_M * QUAD threads for every BLOCK_M rows of Q in every head, and reads both numbers from this file.

constexpr int D = 128;          // numbers in a row
constexpr int QUAD = 4;         // neighbouring threads that share a query row
constexpr int MINE = D / QUAD;  // columns of it that one of them keeps: QUAD * i + part
constexpr int BLOCK_M = 64;     // query rows in a block
constexpr int BLOCK_N = 16;     // keys in a tile; every thread keeps a score for each of them in a register
constexpr int THREADS = BLOCK_M * QUAD;
constexpr float NEVER = -1e30f;  // our minus infinity: finite, so that NEVER - NEVER is 0 and not NaN

// The sum of four neighbours' numbers, handed to all four.
__device__ float sum_of_quad(float x) {
  x += __shfl_xor_sync(0xffffffffu, x, 1);
  return x + __shfl_xor_sync(0xffffffffu, x, 2);
}

extern "C" __global__ void attention(const float *Q, const float *K, const float *V,  // [heads, N, D]
                                     float *O,                                        // [heads, N, D]
                                     int N, float scale, int causal) {
  __shared__ float K_tile[BLOCK_N][D], V_tile[BLOCK_N][D];
  const long long head = static_cast<long long>(blockIdx.y) * N * D;  // all below is about one head
  Q += head, K += head, V += head, O += head;

  const int first_row = blockIdx.x * BLOCK_M;
  const int row = first_row + threadIdx.x / QUAD;
  const int part = threadIdx.x % QUAD;

  float q[MINE], acc[MINE], m = NEVER, l = 0.0f;
  for (int i = 0; i < MINE; i++) {
    q[i] = row < N ? Q[row * D + QUAD * i + part] * scale : 0.0f;
    acc[i] = 0.0f;
  }

  {  // one tile
    const int start = 0;  // the first key of the tile
    for (int i = threadIdx.x; i < BLOCK_N * D; i += THREADS) {
      const bool inside = start * D + i < N * D;  // past the last key: zeros
      K_tile[i / D][i % D] = inside ? K[start * D + i] : 0.0f;
      V_tile[i / D][i % D] = inside ? V[start * D + i] : 0.0f;
    }
    __syncthreads();  // the tile is complete

    float s[BLOCK_N];
#pragma unroll
    for (int j = 0; j < BLOCK_N; j++) {
      float dot = 0.0f;
      for (int i = 0; i < MINE; i++) dot += q[i] * K_tile[j][QUAD * i + part];
      dot = sum_of_quad(dot);
      s[j] = dot;
      m = fmaxf(m, s[j]);
    }
#pragma unroll
    for (int j = 0; j < BLOCK_N; j++) {
      const float p = expf(s[j] - m);
      l += p;
      for (int i = 0; i < MINE; i++) acc[i] += p * V_tile[j][QUAD * i + part];
    }
  }

  if (row < N) {
    for (int i = 0; i < MINE; i++) O[row * D + QUAD * i + part] = acc[i] / l;
  }
}
