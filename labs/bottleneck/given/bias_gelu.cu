// y[m, n] = GELU(x[m, n] + b[n]): a thread for each number.

// grid: (ceil(N / 256), M)      block: 256 threads
extern "C" __global__ void bias_gelu(const float *x,  // [M, N]
                                     const float *b,  // [N]
                                     float *y,        // [M, N]
                                     int M, int N) {
  const int n = blockIdx.x * blockDim.x + threadIdx.x, m = blockIdx.y;
  if (n >= N) return;
  const long long i = static_cast<long long>(m) * N + n;
  const double s = static_cast<double>(x[i]) + static_cast<double>(b[n]);
  y[i] = static_cast<float>(0.5 * s * (1.0 + erf(s * 0.70710678118654752)));
}
