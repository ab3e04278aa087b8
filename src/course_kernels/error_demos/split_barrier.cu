// Split barrier: turn two rows of N numbers round, one after the other, in the same bowl.
//
// Contract  cases.py, split_barrier
// Idea      a __syncthreads() stands inside an if, and some threads of the block never come to it
// Finds it  a time limit, and reading every barrier: who does not come?
// Source    CUDA C++ Programming Guide, section on synchronization functions

// region broken
extern "C" __global__ void split_barrier(const float *x, float *y, int N) {
  __shared__ float bowl[256];
  int t = threadIdx.x;
  for (int row = 0; row < 2; row++) {
    if (t < N) {
      bowl[t] = x[row * N + t];
      __syncthreads();  // the spare threads wait elsewhere
      y[row * N + t] = bowl[N - 1 - t];
    }
    __syncthreads();  // then the bowl is used again
  }
}
// endregion

// region mended
extern "C" __global__ void split_barrier_mended(const float *x, float *y, int N) {
  __shared__ float bowl[256];
  int t = threadIdx.x;
  for (int row = 0; row < 2; row++) {
    if (t < N) bowl[t] = x[row * N + t];
    __syncthreads();  // outside the if: the whole block comes
    if (t < N) y[row * N + t] = bowl[N - 1 - t];
    __syncthreads();
  }
}
// endregion
