// Transpose, kernel 4: the tile is stored scrambled, and no word is wasted.
//
// Contract  problem.py      Launcher  k04_swizzled.py
// Idea      an element of the tile lies in column (column XOR row) of its row: within a row that only changes the
//           order, and down a column it names 32 different banks
// Against   k03_padded, which does the same with longer rows
// Cost      reads and writes every element once; one XOR for every address
// Next      k05_vectorised.cu: rows that begin at multiples of 16 bytes take 16-byte vectors
// Source    NVIDIA CUTLASS documentation, on the swizzled layouts of shared memory

constexpr int TILE = 32;  // a warp is 32 lanes wide, shared memory 32 banks
constexpr int ROWS = 8;   // rows of threads in a block: a thread moves TILE / ROWS = 4 elements

// grid: one block a tile, ceil(M / TILE) * ceil(N / TILE)      block: (TILE, ROWS) threads
extern "C" __global__ void transpose_swizzled(const float *__restrict__ x,  // [M, N]
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
    if (m < M && n < N) tile[row][threadIdx.x ^ row] = x[static_cast<long long>(m) * N + n];
  }
  __syncthreads();  // an element is written by another thread than the one that read it

  // Here threadIdx.x counts along m, and the rows are rows of y.
#pragma unroll
  for (int i = 0; i < TILE; i += ROWS) {
    const int row = threadIdx.y + i;
    const int m = first_m + threadIdx.x, n = first_n + row;
    if (m < M && n < N) y[static_cast<long long>(n) * M + m] = tile[threadIdx.x][row ^ threadIdx.x];
  }
}
