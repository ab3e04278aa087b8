// Endless loop: copy x to y, in steps of a stride that came out as 0.
//
// Contract  cases.py, endless_loop
// Idea      i += 0 never reaches the end
// Finds it  a time limit
// Source    CUDA C++ Programming Guide, section on kernels

// region broken
extern "C" __global__ void endless_loop(const float *x, float *y, int N, int stride) {
  for (int i = threadIdx.x; i < N; i += stride) y[i] = x[i];
}
// endregion

// region mended
extern "C" __global__ void endless_loop_mended(const float *x, float *y, int N) {
  for (int i = threadIdx.x; i < N; i += blockDim.x) y[i] = x[i];  // the block knows its own size
}
// endregion
