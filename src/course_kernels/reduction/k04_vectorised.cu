// Reduction, kernel 4: a thread adds up first, 16 bytes at a time, many of them under way.
//
// Contract  problem.py      Launcher  k04_vectorised.py
// Idea      a few blocks stride through the whole vector: a thread asks for four 16-byte vectors before it waits for
//           the first, and sums in registers until nothing is left; only then do the warps exchange anything
// Against   k03_shuffle, where a thread reads four bytes and shuffles at once, and every 256 elements cost an atomic
// Cost      reads every element once; writes and reads one partial sum a block, and adds no two numbers in an order
//           that depends on luck: the same input gives the same bits
// Next      k05_triton.py, the same in Triton
// Source    Harris, Optimizing Parallel Reduction in CUDA, NVIDIA 2007, reduction 7; Luitjens, NVIDIA Technical Blog
//           2014

constexpr int WARP = 32;
constexpr int THREADS = 256;  // of one block
constexpr int WARPS = THREADS / WARP;
constexpr int VECTORS = 4;   // 64 bytes under way in a thread
constexpr int RESIDENT = 8;  // blocks on a multiprocessor with 2048 threads, 32 registers each: 128 KB under way
constexpr unsigned ALL_LANES = 0xffffffffu;

__device__ inline float sum_of_warp(float value) {
#pragma unroll
  for (int step = WARP / 2; step > 0; step /= 2) value += __shfl_xor_sync(ALL_LANES, value, step);
  return value;
}

__device__ inline void add(float4 &sum, float4 v) {
  sum.x += v.x;
  sum.y += v.y;
  sum.z += v.z;
  sum.w += v.w;
}

// Launched twice: over x, then with one block over the partial sums, which are a vector like any other.
// grid: any      block: THREADS threads
extern "C" __global__ void __launch_bounds__(THREADS, RESIDENT)
    reduction_vectorised(const float *__restrict__ x,  // [N], at a multiple of 16 bytes
                         float *__restrict__ sums,     // [gridDim.x]
                         long long N) {
  __shared__ float part[WARPS];
  const int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
  const float4 *vectors = reinterpret_cast<const float4 *>(x);
  const long long n_vectors = N / 4;
  const long long stride = static_cast<long long>(gridDim.x) * VECTORS * THREADS;

  float4 sum = {};
  long long i = static_cast<long long>(blockIdx.x) * VECTORS * THREADS + threadIdx.x;
#pragma unroll 1
  for (; i + (VECTORS - 1) * THREADS < n_vectors; i += stride) {
    float4 held[VECTORS];  // all are asked for before the first is added
#pragma unroll
    for (int v = 0; v < VECTORS; v++) held[v] = vectors[i + v * THREADS];
#pragma unroll
    for (int v = 0; v < VECTORS; v++) add(sum, held[v]);
  }
#pragma unroll 1
  for (; i < n_vectors; i += THREADS) add(sum, vectors[i]);  // the last stride is not a whole one
  float total = (sum.x + sum.y) + (sum.z + sum.w);

  // Up to three elements do not fill a vector. The first block takes them one by one.
  const long long tail = n_vectors * 4 + threadIdx.x;
  if (blockIdx.x == 0 && tail < N) total += x[tail];

  total = sum_of_warp(total);
  if (lane == 0) part[warp] = total;
  __syncthreads();  // one value of every warp is there

  if (warp != 0) return;
  total = sum_of_warp(lane < WARPS ? part[lane] : 0.0f);
  if (lane == 0) sums[blockIdx.x] = total;
}
