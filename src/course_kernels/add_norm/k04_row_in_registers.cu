// Add and norm, kernel 4: a block keeps its row in registers.
//
// Contract  problem.py      Launcher  k04_row_in_registers.py
// Idea      512 threads share a row, so that 32 numbers for each are the longest row: they stay in registers, and no
//           row takes room in shared memory
// Against   k03_row_on_chip, where rows of 64 KB leave room for a few warps only, each with a few loads under way
// Cost      64 registers a thread, two blocks on a multiprocessor; short rows leave threads without work
// Next      nothing that we tried: it waits for HBM
// Source    Volkov, Better Performance at Lower Occupancy, GTC 2010

constexpr int WARP = 32;
constexpr int THREADS = 512;  // of a block
constexpr int WARPS = THREADS / WARP;
constexpr int MAX_N = 16384;  // of the contract
constexpr int HELD = MAX_N / THREADS;
constexpr int BLOCKS = 2;  // on a multiprocessor: while one adds up, the other fetches
constexpr unsigned ALL_LANES = 0xffffffffu;

__device__ inline float sum_of_warp(float value) {
#pragma unroll
  for (int step = WARP / 2; step > 0; step /= 2) value += __shfl_xor_sync(ALL_LANES, value, step);
  return value;
}

// Every thread gets the sum of all. `part` must not be in use.
__device__ inline float sum_of_block(float value, float *part) {
  value = sum_of_warp(value);
  if (threadIdx.x % WARP == 0) part[threadIdx.x / WARP] = value;
  __syncthreads();  // one value of every warp is there
  float total = 0.0f;
#pragma unroll
  for (int warp = 0; warp < WARPS; warp++) total += part[warp];
  return total;
}

// grid: M      block: THREADS threads
extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
    add_norm_row_in_registers(const float *__restrict__ x,  // [M, N]
                              const float *__restrict__ r,  // [M, N]
                              const float *__restrict__ g,  // [N]
                              float *__restrict__ y,        // [M, N]
                              int M, int N, float epsilon) {
  __shared__ float parts[2][WARPS];  // of both sums: nobody waits before the second
  const long long row = static_cast<long long>(blockIdx.x) * N;

  const int mine = N - static_cast<int>(threadIdx.x);  // number i is within the row where i * THREADS < mine
  x += row + threadIdx.x, r += row + threadIdx.x, y += row + threadIdx.x, g += threadIdx.x;

  float s[HELD];
#pragma unroll
  for (int i = 0; i < HELD; i++) {
    // Past the end: adds nothing to the sum.
    s[i] = i * THREADS < mine ? x[i * THREADS] + r[i * THREADS] : 0.0f;
  }
  float sum = 0.0f;
#pragma unroll
  for (int i = 0; i < HELD; i++) sum += s[i];
  const float mean = sum_of_block(sum, parts[0]) / N;
  float squared = 0.0f;
#pragma unroll
  for (int i = 0; i < HELD; i++) {
    s[i] -= mean;
    if (i * THREADS < mine) squared += s[i] * s[i];
  }
  const float scale = 1.0f / sqrtf(sum_of_block(squared, parts[1]) / N + epsilon);
#pragma unroll
  for (int i = 0; i < HELD; i++) {
    if (i * THREADS < mine) y[i * THREADS] = g[i * THREADS] * s[i] * scale;
  }
}
