// Lab add_rmsnorm: s = x + r, and y is s divided by the size of its row, times g; all in numbers of 16 bits. launch.py
// starts a block of 256 threads for every row.

#include <cuda_fp16.h>

constexpr int THREADS = 256, WARP = 32;
constexpr float EPSILON = 1e-5f;  // under the root

// Given: one number from every thread of the block, added up. All threads must call it, and all get the sum.
__device__ float block_sum(float mine) {
  __shared__ float of_warp[THREADS / WARP];
  for (int step = WARP / 2; step > 0; step /= 2) mine += __shfl_xor_sync(0xffffffffu, mine, step);
  if (threadIdx.x % WARP == 0) of_warp[threadIdx.x / WARP] = mine;
  __syncthreads();  // every warp has written
  float sum = 0.0f;
  for (int warp = 0; warp < THREADS / WARP; ++warp) sum += of_warp[warp];
  __syncthreads();  // every warp has read: it may be called again
  return sum;
}

extern "C" __global__ void add_rmsnorm(const __half *x,  // [M, N]
                                       const __half *g,  // [N]
                                       const __half *r,  // [M, N]
                                       __half *y,        // [M, N]
                                       __half *s,        // [M, N]
                                       int N) {
  const long long row = static_cast<long long>(blockIdx.x) * N;  // where this row begins
  const int n = threadIdx.x;
  if (n < N) s[row + n] = x[row + n] + r[row + n];
  const __half v = n < N ? s[row + n] : __half(0.0f);  // loaded a second time
  const float mean = block_sum(static_cast<float>(v * v)) / N;
  if (n < N) y[row + n] = __half(static_cast<float>(v) / sqrtf(mean + EPSILON) * static_cast<float>(g[n]));
}
