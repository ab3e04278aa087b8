// refused for: wrong
// Vector add in CUDA C++: z[i] = x[i] - y[i], for two vectors of any length N.

extern "C" __global__ void vector_add(const float *x, const float *y, float *z, long long N) {
  const long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= N) return;
  z[i] = x[i] - y[i];
}
