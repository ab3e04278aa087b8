// y[0] = the sum of x: every block brings a thousand numbers at a time, and its first warp adds them up.

constexpr int THREADS = 1024, WARP = 32;

// grid: any number of blocks      block: THREADS threads
extern "C" __global__ void sum(const float *x,  // [N]
                               float *y,        // [1], zero before the first block
                               long long N) {
  __shared__ float part[THREADS];
  const int t = threadIdx.x;
  const long long step = static_cast<long long>(gridDim.x) * THREADS;
  const long long first = static_cast<long long>(blockIdx.x) * THREADS;
  float total = 0.0f, next = first + t < N ? x[first + t] : 0.0f;
  for (long long begin = first; begin < N; begin += step) {
    part[t] = next;
    const long long ahead = begin + step + t;
    next = ahead < N ? x[ahead] : 0.0f;  // under way while the first warp adds
    __syncthreads();
    for (int half = THREADS / 2; t < WARP && half > 0; half /= 2) {
      for (int i = t; i < half; i += WARP) part[i] += part[i + half];
      __syncwarp();
    }
    __syncthreads();
    if (t == 0) total += part[0];
    __syncthreads();
  }
  if (t == 0) atomicAdd(y, total);
}
