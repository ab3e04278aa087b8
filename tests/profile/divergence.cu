// planted: divergence
//
// Each lane looks through all W ways for its own, and goes it while the others wait.

constexpr int ROUNDS = 256;

// grid: ceil(N / 256)      block: 256 threads
extern "C" __global__ void ways(const float *x,  // [N]
                                float *y,        // [N]
                                int N, int W) {
  const int n = blockIdx.x * blockDim.x + threadIdx.x;
  if (n >= N) return;
  float value = x[n];
  for (int way = 0; way < W; way++) {
    if (way != n % W) continue;
    const float a = 1.0f - (way + 1) / 4096.0f;
#pragma unroll 16
    for (int round = 0; round < ROUNDS; round++) value = fmaf(value, a, 1.0f / 64.0f);
  }
  y[n] = value;
}
