// Out of bounds: write 7 into every number of x, and past its end.
//
// Contract  cases.py, out_of_bounds
// Idea      the last block reaches past the end, and nobody asks
// Finds it  compute-sanitizer --tool memcheck, with PyTorch's own allocator switched off
// Source    CUDA C++ Programming Guide, section on kernels

// region broken
extern "C" __global__ void out_of_bounds(float *x, int N) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  x[i] = 7.0f;
}
// endregion

// region mended
extern "C" __global__ void out_of_bounds_mended(float *x, int N) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= N) return;  // a spare thread keeps its hands off
  x[i] = 7.0f;
}
// endregion
