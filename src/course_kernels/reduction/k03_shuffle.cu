// Reduction, kernel 3: lanes of a warp hand their registers to each other.
//
// Contract  problem.py      Launcher  k03_shuffle.py
// Idea      a shuffle reads a register of another lane; a warp adds up 32 numbers in five of them and sends one value
//           through shared memory, behind one barrier
// Against   k02_tree, where every step goes through shared memory and waits for the whole block
// Cost      reads every element once; one addition to the total for THREADS elements; one barrier in a block
// Next      k04_vectorised.cu, which has enough bytes under way
// Source    Luitjens, Faster Parallel Reductions on Kepler, NVIDIA Technical Blog 2014

constexpr int WARP = 32;
constexpr int THREADS = 256;  // of one block
constexpr int WARPS = THREADS / WARP;
constexpr unsigned ALL_LANES = 0xffffffffu;

// The sum over the lanes of a warp, in every lane: partners are 16 lanes apart, then 8, 4, 2, 1.
__device__ inline float sum_of_warp(float value) {
#pragma unroll
  for (int step = WARP / 2; step > 0; step /= 2) value += __shfl_xor_sync(ALL_LANES, value, step);
  return value;
}

// grid: ceil(N / THREADS)      block: THREADS threads
extern "C" __global__ void reduction_shuffle(const float *__restrict__ x,  // [N]
                                             float *y,                     // [1], zero before the first block
                                             long long N) {
  __shared__ float part[WARPS];
  const int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
  const long long i = static_cast<long long>(blockIdx.x) * THREADS + threadIdx.x;

  float sum = sum_of_warp(i < N ? x[i] : 0.0f);
  if (lane == 0) part[warp] = sum;
  __syncthreads();  // one value of every warp is there

  if (warp != 0) return;  // the first warp adds them up
  sum = sum_of_warp(lane < WARPS ? part[lane] : 0.0f);
  if (lane == 0) atomicAdd(y, sum);
}
