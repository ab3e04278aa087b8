// Transpose, kernel 1: read an element, write it where it belongs.
//
// Contract  problem.py      Launcher  k01_naive.py
// Idea      a thread finds its element's place in y by swapping the two indices
// Cost      reads and writes every element once; but the 32 elements a warp writes lie in 32 rows of y, so one
//           store touches 32 sectors of 32 bytes and uses 4 bytes of each
// Next      k02_tiled.cu, which turns the tile round on the chip
// Source    Ruetsch & Micikevicius, Optimizing Matrix Transpose in CUDA, NVIDIA 2009

constexpr int TILE = 32;  // a warp is 32 lanes wide
constexpr int ROWS = 8;   // rows of threads in a block: a thread moves TILE / ROWS = 4 elements

// grid: one block a tile, ceil(M / TILE) * ceil(N / TILE)      block: (TILE, ROWS) threads
extern "C" __global__ void transpose_naive(const float *__restrict__ x,  // [M, N]
                                           float *__restrict__ y,        // [N, M]
                                           int M, int N) {
  const int tiles_n = (N + TILE - 1) / TILE;  // tiles side by side
  const int first_m = blockIdx.x / tiles_n * TILE;
  const int first_n = blockIdx.x % tiles_n * TILE;

  // Neighbouring threads have neighbouring n: neighbours in x, M elements apart in y.
#pragma unroll
  for (int i = 0; i < TILE; i += ROWS) {
    const int row = threadIdx.y + i;
    const int m = first_m + row, n = first_n + threadIdx.x;
    if (m < M && n < N) y[static_cast<long long>(n) * M + m] = x[static_cast<long long>(m) * N + n];
  }
}
