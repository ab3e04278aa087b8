// Transpose, kernel 3: one word of padding takes the columns apart.
//
// Contract  problem.py      Launcher  k03_padded.py
// Idea      a row of the tile is 33 words long, so the words of a column lie in 32 different banks
// Against   k02_tiled, where a row is 32 words long and a column lies in one bank
// Cost      reads and writes every element once; TILE words of shared memory that hold nothing, and rows that no
//           longer begin at a multiple of 16 bytes
// Next      k04_swizzled.cu, which needs no padding
// Source    Ruetsch & Micikevicius, Optimizing Matrix Transpose in CUDA, NVIDIA 2009

constexpr int TILE = 32;  // a warp is 32 lanes wide, shared memory 32 banks
constexpr int ROWS = 8;   // rows of threads in a block: a thread moves TILE / ROWS = 4 elements

// grid: one block a tile, ceil(M / TILE) * ceil(N / TILE)      block: (TILE, ROWS) threads
extern "C" __global__ void transpose_padded(const float *__restrict__ x,  // [M, N]
                                            float *__restrict__ y,        // [N, M]
                                            int M, int N) {
  __shared__ float tile[TILE][TILE + 1];  // word (row, column) lies in bank (33 * row + column) % 32
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
