// Lab sgemm_tiles: C = A B in fp32. launch.py calls this kernel with one block of 32 x 32 threads for every tile of
// 32 x 32 numbers of C: blockIdx.x counts tiles along a row of C, blockIdx.y down a column.

constexpr int TILE = 32;

extern "C" __global__ void sgemm(const float *A,  // [M, K]
                                 const float *B,  // [K, N]
                                 float *C,        // [M, N]
                                 int M, int N, int K) {
  // your lines go here
}
