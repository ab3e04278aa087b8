// Lab reduction: many numbers in, their sum out. launch.py calls this kernel with blocks of 256 threads, at most
// 2048 of them, and y[0] is 0 when it starts.

constexpr int WARP = 32;
constexpr unsigned ALL_LANES = 0xffffffffu;

extern "C" __global__ void reduction(const float *x,  // [N]
                                     float *y,        // [1]
                                     long long N) {
  const long long first = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
  const long long threads = static_cast<long long>(gridDim.x) * blockDim.x;
  float sum = 0.0f;
  for (long long i = first; i < N; i += threads) sum += x[i];  // nobody reads past the end
  for (int step = WARP / 2; step > 0; step /= 2)  // 32 sums, then 16, 8, 4, 2, 1
    sum += __shfl_down_sync(ALL_LANES, sum, step);
  if (threadIdx.x % WARP == 0) atomicAdd(y, sum);  // lane 0 holds the sum of its warp
}

// The squares of all steps from one number to the next, added up.
extern "C" __global__ void roughness(const float *x,  // [N]
                                     float *y,        // [1]
                                     long long N) {
  const long long first = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
  const long long threads = static_cast<long long>(gridDim.x) * blockDim.x;
  float squares = 0.0f;
  for (long long i = first; i + 1 < N; i += threads) {  // the last number has no right neighbour
    const float rise = x[i + 1] - x[i];
    squares += rise * rise;
  }
  for (int step = WARP / 2; step > 0; step /= 2)  // 32 sums, then 16, 8, 4, 2, 1
    squares += __shfl_down_sync(ALL_LANES, squares, step);
  if (threadIdx.x % WARP == 0) atomicAdd(y, squares);
}
