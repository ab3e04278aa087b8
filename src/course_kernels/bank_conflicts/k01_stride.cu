// Bank conflicts, kernel 1: 32 lanes read 32 words that lie a stride apart.
//
// Contract  problem.py      Launcher  k01_stride.py
// Idea      shared memory has 32 banks and word i lies in bank i % 32; a bank hands out one word in a turn, so lanes
//           that want different words of one bank stand in line
// Cost      a turn for every lane that wants the same bank: S of them where S is a power of two, one where S is odd
// Source    CUDA C++ Programming Guide, section on shared memory

constexpr int TILE = 1024, ROUNDS = 512, WARP = 32;

// grid: ceil(N / TILE)      block: TILE threads
extern "C" __global__ void sum_windows(const float *x,  // [N]
                                       float *y,        // [N]
                                       long long N, int S) {
  // The tile, and its first half again behind it: a window never has to wrap.
  __shared__ float tile[TILE + ROUNDS];
  const int thread = threadIdx.x;
  const long long n = static_cast<long long>(blockIdx.x) * TILE + thread;
  const float mine = n < N ? x[n] : 0.0f;
  tile[thread] = mine;
  if (thread < ROUNDS) tile[TILE + thread] = mine;
  __syncthreads();

  const float *window = tile + (S * (thread % WARP) + thread / WARP * WARP) % TILE;
  float sum = 0.0f;
#pragma unroll 64
  for (int r = 0; r < ROUNDS; r++) sum += window[r];
  if (n < N) y[n] = sum;
}
