// planted: tail wave
//
// Chains of multiply-adds in blocks so large that the card holds two on a multiprocessor, and one block too many.

constexpr int CHAINS = 8, THREADS = 1024, BLOCKS = 2;

// grid: ceil(N / THREADS)      block: THREADS threads      C is 8
extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
    multiply_add(const float *x,  // [C, N]
                 const float *a,  // [N]
                 float *y,        // [C, N]
                 int N, int K) {
  const int n = blockIdx.x * blockDim.x + threadIdx.x;
  if (n >= N) return;
  float value[CHAINS];
  for (int c = 0; c < CHAINS; c++) value[c] = x[static_cast<long long>(c) * N + n];
  const float factor = a[n];
  for (int step = 0; step < K; step++)
    for (int c = 0; c < CHAINS; c++) value[c] = fmaf(factor, value[c], 1.0f);
  for (int c = 0; c < CHAINS; c++) y[static_cast<long long>(c) * N + n] = value[c];
}
