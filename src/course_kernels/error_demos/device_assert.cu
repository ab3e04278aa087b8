// Device assert: the gather of illegal_address.cu, with its promise written down.
//
// Contract  cases.py, device_assert
// Idea      a promise that is checked names its own line when it is broken
// Source    CUDA C++ Programming Guide, section on assertion

extern "C" __global__ void device_assert(
    const float *x, const long long *index, float *y, int N) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= N) return;
  assert(0 <= index[i] && index[i] < N);
  y[i] = x[index[i]];
}
