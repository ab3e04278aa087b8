// Missing barrier: turn every block's 1024 numbers round, through shared memory.
//
// Contract  cases.py, missing_barrier
// Idea      a thread reads what another thread may not have written yet
// Finds it  compute-sanitizer --tool racecheck
// Source    CUDA C++ Programming Guide, section on shared memory

// region broken
extern "C" __global__ void missing_barrier(const float *x, float *y) {
  __shared__ float bowl[1024];
  int t = threadIdx.x, i = blockIdx.x * 1024 + t;
  bowl[t] = x[i];
  y[i] = bowl[1023 - t];
}
// endregion

// region mended
extern "C" __global__ void missing_barrier_mended(const float *x, float *y) {
  __shared__ float bowl[1024];
  int t = threadIdx.x, i = blockIdx.x * 1024 + t;
  bowl[t] = x[i];
  __syncthreads();  // nobody reads before everybody has written
  y[i] = bowl[1023 - t];
}
// endregion
