// Uninitialised: add x to an output that nobody set to zero.
//
// Contract  cases.py, uninitialised
// Idea      fresh memory holds whatever lay there last, and that is often zero
// Finds it  compute-sanitizer --tool initcheck, with PyTorch's own allocator switched off
// Source    CUDA C++ Programming Guide, section on device memory

// region broken
extern "C" __global__ void uninitialised(const float *x, float *y, int N) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= N) return;
  y[i] += x[i];  // reads y before anyone has written it
}
// endregion

// region mended
extern "C" __global__ void uninitialised_mended(const float *x, float *y, int N) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= N) return;
  y[i] = x[i];
}
// endregion
