// Illegal address: y[i] = x[index[i]], where one index is garbage.
//
// Contract  cases.py, illegal_address
// Idea      the address is so far off that no memory is there, and the GPU gives up
// Finds it  compute-sanitizer --tool memcheck; CUDA_LAUNCH_BLOCKING=1 names the launch
// Source    CUDA C++ Programming Guide, section on error checking

// region broken
extern "C" __global__ void illegal_address(
    const float *x, const long long *index, float *y, int N) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= N) return;
  y[i] = x[index[i]];
}
// endregion

// region mended
extern "C" __global__ void illegal_address_mended(
    const float *x, const long long *index, float *y, int N) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= N) return;
  long long j = index[i];
  y[i] = (0 <= j && j < N) ? x[j] : nanf("");  // a value that nobody mistakes for an answer
}
// endregion
