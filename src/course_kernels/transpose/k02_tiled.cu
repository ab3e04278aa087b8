// Transpose, kernel 2: a tile is turned round in shared memory.
//
// Contract  problem.py      Launcher  k02_tiled.py
// Idea      a block reads its tile row by row into shared memory and writes it from there column by column: now
//           neighbouring threads are neighbours in x when they read and neighbours in y when they write
// Against   k01_naive, whose threads are neighbours in x only
// Cost      reads and writes every element once; but a column of the tile lies in one bank of shared memory, which
//           hands out one word at a time: 32 turns for one read
// Next      k03_padded.cu, which spreads the columns over the banks
// Source    Ruetsch & Micikevicius, Optimizing Matrix Transpose in CUDA, NVIDIA 2009

constexpr int TILE = 32;  // a warp is 32 lanes wide, shared memory 32 banks
constexpr int ROWS = 8;   // rows of threads in a block: a thread moves TILE / ROWS = 4 elements

// grid: one block a tile, ceil(M / TILE) * ceil(N / TILE)      block: (TILE, ROWS) threads
extern "C" __global__ void transpose_tiled(const float *__restrict__ x,  // [M, N]
                                           float *__restrict__ y,        // [N, M]
                                           int M, int N) {
  __shared__ float tile[TILE][TILE];
  const int tiles_n = (N + TILE - 1) / TILE;  // tiles side by side
  const int first_m = blockIdx.x / tiles_n * TILE;
  const int first_n = blockIdx.x % tiles_n * TILE;

#pragma unroll
  for (int i = 0; i < TILE; i += ROWS) {
    const int row = threadIdx.y + i;
    const int m = first_m + row, n = first_n + threadIdx.x;
    if (m < M && n < N) tile[row][threadIdx.x] = x[static_cast<long long>(m) * N + n];
  }
  __syncthreads();  // an element is written by another thread than the one that read it

  // Here threadIdx.x counts along m, and the rows are rows of y.
#pragma unroll
  for (int i = 0; i < TILE; i += ROWS) {
    const int row = threadIdx.y + i;
    const int m = first_m + threadIdx.x, n = first_n + row;
    if (m < M && n < N) y[static_cast<long long>(n) * M + m] = tile[threadIdx.x][row];
  }
}
