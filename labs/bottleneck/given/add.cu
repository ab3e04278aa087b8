// z[n] = x[n] + y[n], through shared memory.

constexpr int THREADS = 128, ROOM = 48 * 1024;  // floats

// grid: any number of blocks      block: THREADS threads      shared memory: ROOM floats
extern "C" __global__ void add(const float *x,  // [N]
                               const float *y,  // [N]
                               float *z,        // [N]
                               long long N) {
  extern __shared__ float sum[];
  const long long step = static_cast<long long>(gridDim.x) * THREADS;
  int slot = threadIdx.x;
#pragma unroll 1
  for (long long i = static_cast<long long>(blockIdx.x) * THREADS + threadIdx.x; i < N; i += step) {
    sum[slot] = x[i] + y[i];
    z[i] = sum[slot];
    slot = slot + THREADS < ROOM ? slot + THREADS : threadIdx.x;
  }
}
