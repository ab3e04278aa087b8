// y[c, n] = x[c, n] after K times x <- a[n] * x + 1: a thread takes all C values of its n.

// grid: ceil(N / 128)      block: 128 threads
extern "C" __global__ void multiply_add(const float *x,  // [C, N]
                                        const float *a,  // [N]
                                        float *y,        // [C, N]
                                        int N, int C, int K) {
  const int n = blockIdx.x * blockDim.x + threadIdx.x;
  if (n >= N) return;
  const float factor = a[n];
#pragma unroll 1
  for (int c = 0; c < C; c++) {
    float value = x[static_cast<long long>(c) * N + n];
#pragma unroll 16
    for (int step = 0; step < K; step++) value = fmaf(factor, value, 1.0f);
    y[static_cast<long long>(c) * N + n] = value;
  }
}
