// Lab add_rmsnorm: s = x + r, and y is s divided by the size of its row, times g; all in numbers of 16 bits. launch.py
// starts a block of 256 threads for every row.

#include <cuda_fp16.h>

constexpr int THREADS = 256, WARP = 32;
constexpr int MOST = 64;          // numbers of a row that a thread may keep: rows of up to 16 384
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
  float kept[MOST];  // in registers: every place in it is known when this is compiled
  float mine = 0.0f;  // squares, of this thread's numbers
#pragma unroll
  for (int k = 0; k < MOST; ++k) {
    const int n = k * THREADS + threadIdx.x;
    // Wide before anything is squared.
    kept[k] = n < N ? static_cast<float>(x[row + n]) + static_cast<float>(r[row + n]) : 0.0f;
    if (n < N) s[row + n] = __half(kept[k]);
    mine += kept[k] * kept[k];
  }
  const float root = sqrtf(block_sum(mine) / N + EPSILON);
#pragma unroll
  for (int k = 0; k < MOST; ++k) {
    const int n = k * THREADS + threadIdx.x;
    if (n < N) y[row + n] = __half(kept[k] / root * static_cast<float>(g[n]));
  }
}

// The largest of one number from every thread of the block; all threads get it.
__device__ float block_largest(float mine) {
  __shared__ float largest_of[THREADS / WARP];
  for (int step = WARP / 2; step > 0; step /= 2) mine = fmaxf(mine, __shfl_xor_sync(0xffffffffu, mine, step));
  if (threadIdx.x % WARP == 0) largest_of[threadIdx.x / WARP] = mine;
  __syncthreads();
  for (int warp = 0; warp < THREADS / WARP; ++warp) mine = fmaxf(mine, largest_of[warp]);
  return mine;
}

extern "C" __global__ void add_rmsnorm_scaled(const __half *x,  // [M, N]
                                              const __half *g,  // [N]
                                              const __half *r,  // [M, N]
                                              __half *q,        // [M, N]
                                              __half *a,        // [M]
                                              __half *s,        // [M, N]
                                              int N) {
  const long long first = static_cast<long long>(blockIdx.x) * N;
  float kept[MOST], together = 0.0f, largest = 0.0f;
#pragma unroll
  for (int k = 0; k < MOST; ++k) {
    const int n = k * THREADS + threadIdx.x;
    kept[k] = 0.0f;
    if (n >= N) continue;
    kept[k] = static_cast<float>(x[first + n]) + static_cast<float>(r[first + n]);
    s[first + n] = __half(kept[k]);
    together += kept[k] * kept[k];
  }
  const float size = sqrtf(block_sum(together) / N + EPSILON);
#pragma unroll
  for (int k = 0; k < MOST; ++k) {
    const int n = k * THREADS + threadIdx.x;
    if (n >= N) continue;
    kept[k] = kept[k] / size * static_cast<float>(g[n]);  // y, and stored nowhere
    largest = fmaxf(largest, fabsf(kept[k]));
  }
  largest = block_largest(largest);
  if (threadIdx.x == 0) a[blockIdx.x] = __half(largest);
#pragma unroll
  for (int k = 0; k < MOST; ++k) {
    const int n = k * THREADS + threadIdx.x;
    if (n < N) q[first + n] = __half(kept[k] / largest);
  }
}
