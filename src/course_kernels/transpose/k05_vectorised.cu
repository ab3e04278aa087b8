// Transpose, kernel 5: 16 bytes in every load, in every store, and in every step between.
//
// Contract  problem.py      Launcher  k05_vectorised.py
// Idea      a thread reads a square of 4 x 4 elements as four 16-byte vectors, turns it round in its registers, and
//           hands four vectors on; what is exchanged through shared memory, swizzled, are whole vectors
// Against   k04_swizzled, which moves one element with every instruction and has 16 bytes under way in a thread
// Cost      reads and writes every element once
// Limits    vectors need M and N divisible by 4; other sizes move element by element and are slower
// Source    Ruetsch & Micikevicius, Optimizing Matrix Transpose in CUDA, NVIDIA 2009; the rest is ours

// 64 x 64 elements: a row of the tile is 256 bytes of x, a column 256 bytes of y. 64 bytes are under way in a
// thread, 16 KB in a block.
constexpr int TILE_M = 64;
constexpr int TILE_N = 64;
constexpr int THREADS = 256;
constexpr int SQUARES = TILE_M * TILE_N / 16 / THREADS;  // of 4 x 4 elements, for one thread

constexpr int ACROSS_M = TILE_M / 4;  // vectors along m, in y and in the shared tile
constexpr int ACROSS_N = TILE_N / 4;  // vectors along n, in x

// Where a vector of the turned tile lies: row n, column (vector XOR n / 4). Eight threads at a time read or write
// shared memory, 16 bytes each. Whether they walk along a row or down a column of squares, they meet all 32 banks.
__device__ inline int swizzled(int n, int vector) { return n * ACROSS_M + (vector ^ n / 4) % ACROSS_M; }

// Elements n .. n + 3 of a row, `left` of them inside the matrix.
template <bool WHOLE>
__device__ inline float4 load(const float *from, int left) {
  if (WHOLE && left > 0) return *reinterpret_cast<const float4 *>(from);
  float4 v = {};
  if (left > 0) v.x = from[0];
  if (left > 1) v.y = from[1];
  if (left > 2) v.z = from[2];
  if (left > 3) v.w = from[3];
  return v;
}

template <bool WHOLE>
__device__ inline void store(float *to, int left, float4 v) {
  if (WHOLE && left > 0) *reinterpret_cast<float4 *>(to) = v;
  if (WHOLE) return;
  if (left > 0) to[0] = v.x;
  if (left > 1) to[1] = v.y;
  if (left > 2) to[2] = v.z;
  if (left > 3) to[3] = v.w;
}

// WHOLE: M and N are multiples of 4, and every row of x begins at a multiple of 16 bytes.
template <bool WHOLE>
__device__ inline void transpose(const float *__restrict__ x, float *__restrict__ y, int M, int N) {
  __shared__ float4 tile[TILE_N * ACROSS_M];
  // Blocks that run together go down a column of tiles of x: along a row of tiles of y. So what is under way at one
  // time is a few long rows of y, and many short pieces of x. The other way round was slower when we tried both.
  const int tiles_m = (M + TILE_M - 1) / TILE_M;
  const int first_m = blockIdx.x % tiles_m * TILE_M;
  const int first_n = blockIdx.x / tiles_m * TILE_N;

  // Ask for everything before the first vector is needed.
  float4 rows[SQUARES][4];
#pragma unroll
  for (int s = 0; s < SQUARES; s++) {
    const int square = threadIdx.x + s * THREADS;
    const int m = first_m + square / ACROSS_N * 4, n = first_n + square % ACROSS_N * 4;
#pragma unroll
    for (int i = 0; i < 4; i++) {
      rows[s][i] = load<WHOLE>(x + static_cast<long long>(m + i) * N + n, m + i < M ? N - n : 0);
    }
  }

  // Four rows of a square become four columns: no instruction, only other names for the registers.
#pragma unroll
  for (int s = 0; s < SQUARES; s++) {
    const int square = threadIdx.x + s * THREADS;
    const int vector = square / ACROSS_N, n = square % ACROSS_N * 4;
    const float4 *r = rows[s];
    tile[swizzled(n + 0, vector)] = {r[0].x, r[1].x, r[2].x, r[3].x};
    tile[swizzled(n + 1, vector)] = {r[0].y, r[1].y, r[2].y, r[3].y};
    tile[swizzled(n + 2, vector)] = {r[0].z, r[1].z, r[2].z, r[3].z};
    tile[swizzled(n + 3, vector)] = {r[0].w, r[1].w, r[2].w, r[3].w};
  }
  __syncthreads();  // a vector is written by another thread than the one that put it together

#pragma unroll
  for (int v = 0; v < SQUARES * 4; v++) {
    const int place = threadIdx.x + v * THREADS;
    const int row = place / ACROSS_M, vector = place % ACROSS_M;
    const int m = first_m + vector * 4, n = first_n + row;
    store<WHOLE>(y + static_cast<long long>(n) * M + m, n < N ? M - m : 0, tile[swizzled(row, vector)]);
  }
}

// grid: one block a tile, ceil(M / TILE_M) * ceil(N / TILE_N)      block: THREADS threads
extern "C" __global__ void transpose_vectorised(const float *__restrict__ x,  // [M, N]
                                                float *__restrict__ y,        // [N, M]
                                                int M, int N) {
  transpose<true>(x, y, M, N);
}

extern "C" __global__ void transpose_any(const float *__restrict__ x,  // [M, N]
                                         float *__restrict__ y,        // [N, M]
                                         int M, int N) {
  transpose<false>(x, y, M, N);
}
