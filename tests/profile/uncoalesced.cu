// planted: uncoalesced
//
// Bias and GELU with the lanes of a warp along m: neighbours ask for numbers that lie a whole row apart.

// grid: (ceil(M / 256), N)      block: 256 threads
extern "C" __global__ void bias_gelu(const float *x,  // [M, N]
                                     const float *b,  // [N]
                                     float *y,        // [M, N]
                                     int M, int N) {
  const int m = blockIdx.x * blockDim.x + threadIdx.x, n = blockIdx.y;
  if (m >= M) return;
  const long long i = static_cast<long long>(m) * N + n;
  const float s = x[i] + b[n];
  y[i] = 0.5f * s * (1.0f + erff(s * 0.70710678f));
}
