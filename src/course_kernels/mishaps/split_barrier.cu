// Split barrier: only some threads of a block come to the barrier.
//
// Contract  cases.py, split_barrier
// Idea      __syncthreads() stands inside an if, and the others never get there
// Finds it  compute-sanitizer --tool synccheck
// Source    CUDA C++ Programming Guide, section on synchronization functions

// region broken
extern "C" __global__ void split_barrier(const float *x, float *y, int N) {
  __shared__ float bowl[256];
  int t = threadIdx.x;
  if (t < N) {
    bowl[t] = x[t];
    __syncthreads();
    y[t] = bowl[N - 1 - t];
  }
}
// endregion

// region mended
extern "C" __global__ void split_barrier_mended(const float *x, float *y, int N) {
  __shared__ float bowl[256];
  int t = threadIdx.x;
  if (t < N) bowl[t] = x[t];
  __syncthreads();  // outside the if: the whole block comes
  if (t < N) y[t] = bowl[N - 1 - t];
}
// endregion
