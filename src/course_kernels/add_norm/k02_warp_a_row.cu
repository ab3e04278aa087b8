// Add and norm, kernel 2: a warp takes a row.
//
// Contract  problem.py      Launcher  k02_warp_a_row.py
// Idea      32 lanes walk along one row side by side, and add up their sums by shuffles at the end
// Against   k01_thread_a_row, whose threads stand below each other, a whole row apart
// Cost      every lane keeps a sum of its own; ten shuffles a row
// Next      k03_row_on_chip.cu
// Source    Luitjens, Faster Parallel Reductions on Kepler, NVIDIA Technical Blog 2014

constexpr int WARP = 32;
constexpr int ROWS = 8;  // of a block, a warp for each
constexpr unsigned ALL_LANES = 0xffffffffu;

__device__ inline float sum_of_warp(float value) {
#pragma unroll
  for (int step = WARP / 2; step > 0; step /= 2) value += __shfl_xor_sync(ALL_LANES, value, step);
  return value;
}

// grid: ceil(M / ROWS)      block: WARP * ROWS threads
extern "C" __global__ void __launch_bounds__(WARP *ROWS)
    add_norm_warp_a_row(const float *__restrict__ x,  // [M, N]
                        const float *__restrict__ r,  // [M, N]
                        const float *__restrict__ g,  // [N]
                        float *__restrict__ y,        // [M, N]
                        int M, int N, float epsilon) {
  const int lane = threadIdx.x % WARP;
  const int m = blockIdx.x * ROWS + threadIdx.x / WARP;
  if (m >= M) return;  // the whole warp
  const long long row = static_cast<long long>(m) * N;

  float sum = 0.0f;
  for (int n = lane; n < N; n += WARP) sum += x[row + n] + r[row + n];
  const float mean = sum_of_warp(sum) / N;
  float squared = 0.0f;
  for (int n = lane; n < N; n += WARP) {
    const float off = x[row + n] + r[row + n] - mean;
    squared += off * off;
  }
  const float scale = 1.0f / sqrtf(sum_of_warp(squared) / N + epsilon);
  for (int n = lane; n < N; n += WARP) y[row + n] = g[n] * (x[row + n] + r[row + n] - mean) * scale;
}
