// Add and norm, kernel 3: a block keeps its row in shared memory.
//
// Contract  problem.py      Launcher  k03_row_on_chip.py
// Idea      the sum x + r is put down in shared memory on the first walk, and the other walks take it from there
// Against   k02_warp_a_row, which fetches the row three times; three warps share a row now, for its room is dear
// Cost      4 N bytes of shared memory a block: 64 KB for the longest row; two barriers a row
// Next      k04_row_in_registers.cu
// Source    Milakov and Gimelshein, Online normalizer calculation for softmax, 2018, on trips as the cost of a norm

constexpr int WARP = 32;
constexpr int THREADS = 96;  // of a block; three blocks fit, 64 KB each, and share the multiprocessor
constexpr int WARPS = THREADS / WARP;
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

// grid: M      block: THREADS threads, 4 N bytes of dynamic shared memory
extern "C" __global__ void __launch_bounds__(THREADS)
    add_norm_row_on_chip(const float *__restrict__ x,  // [M, N]
                         const float *__restrict__ r,  // [M, N]
                         const float *__restrict__ g,  // [N]
                         float *__restrict__ y,        // [M, N]
                         int M, int N, float epsilon) {
  extern __shared__ float kept[];  // [N]
  __shared__ float parts[2][WARPS];  // of both sums: nobody waits before the second
  const long long row = static_cast<long long>(blockIdx.x) * N;

  float sum = 0.0f;
  for (int n = threadIdx.x; n < N; n += THREADS) {
    const float s = x[row + n] + r[row + n];
    kept[n] = s;  // the same thread takes it back
    sum += s;
  }
  const float mean = sum_of_block(sum, parts[0]) / N;
  float squared = 0.0f;
  for (int n = threadIdx.x; n < N; n += THREADS) {
    const float off = kept[n] - mean;
    squared += off * off;
  }
  const float scale = 1.0f / sqrtf(sum_of_block(squared, parts[1]) / N + epsilon);
  for (int n = threadIdx.x; n < N; n += THREADS) y[row + n] = g[n] * (kept[n] - mean) * scale;
}
