// Vector add in CUDA C++: z[i] = x[i] + y[i], for two vectors of any length N.

extern "C" __global__ void vector_add(const float *x, const float *y, float *z, long long N) {
  const int i = threadIdx.x;
  z[i] = x[i] + y[i];
}
