// Lab transpose: the rows of x become the columns of y. launch.py calls this kernel with one block of 32 x 8 threads
// for every tile of x: blockIdx.x counts tiles along a row, blockIdx.y down a column.

constexpr int TILE = 32;
constexpr int ROWS = 8;  // rows of threads: every thread moves TILE / ROWS elements

extern "C" __global__ void transpose(const float *x,  // [M, N]
                                     float *y,        // [N, M]
                                     int M, int N) {
  // your lines go here
}
