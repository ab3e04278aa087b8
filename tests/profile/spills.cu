// planted: spills
//
// 64 chains of multiply-adds in one thread, with a bound that leaves 32 registers for them.

constexpr int CHAINS = 64, THREADS = 1024, BLOCKS = 2;

// grid: ceil(N / THREADS)      block: THREADS threads      C is 64
extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
    multiply_add(const float *x,  // [C, N]
                 const float *a,  // [N]
                 float *y,        // [C, N]
                 int N, int K) {
  const int n = blockIdx.x * blockDim.x + threadIdx.x;
  if (n >= N) return;
  float value[CHAINS];
#pragma unroll
  for (int c = 0; c < CHAINS; c++) value[c] = x[static_cast<long long>(c) * N + n];
  const float factor = a[n];
#pragma unroll 1
  for (int step = 0; step < K; step++) {
#pragma unroll
    for (int c = 0; c < CHAINS; c++) value[c] = fmaf(factor, value[c], 1.0f);
  }
#pragma unroll
  for (int c = 0; c < CHAINS; c++) y[static_cast<long long>(c) * N + n] = value[c];
}
