// Bytes in flight, kernel 1: a copy with V vectors under way in a thread and R blocks on a multiprocessor.
//
// Contract  problem.py      Launcher  k01_limited.py
// Idea      a block asks for shared memory it never touches, so that only R of them fit on a multiprocessor; a thread
//           asks for V vectors before it writes the first. V and R are then free to choose, and nothing else changes
// Against   copy/k01_vectorised, where V is 4 and as many blocks are resident as fit
// Cost      reads and writes every byte once
// Source    Volkov, Better Performance at Lower Occupancy, GPU Technology Conference 2010

#ifndef VECTORS
#error "compile with -D VECTORS=1, 2, 4 or 8"
#endif

constexpr int THREADS = 256;  // of one block

// As many registers as eight resident blocks leave; eight vectors do not fit into those, and get twice as many.
constexpr int BLOCKS_WITH_ROOM = VECTORS < 8 ? 8 : 4;

// grid: the resident blocks of all multiprocessors      block: THREADS threads
extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS_WITH_ROOM)
    copy_limited(const float *__restrict__ x,  // [N]; both begin at multiples of 16 bytes
                 float *__restrict__ y,        // [N]
                 long long N) {
  const float4 *from = reinterpret_cast<const float4 *>(x);
  float4 *to = reinterpret_cast<float4 *>(y);
  const long long n_vectors = N / 4;
  const long long stride = static_cast<long long>(gridDim.x) * VECTORS * THREADS;

  // The blocks stay and stride through the vector: none comes or goes, so R of them are there all the time.
  long long i = static_cast<long long>(blockIdx.x) * VECTORS * THREADS + threadIdx.x;
#pragma unroll 1
  for (; i + (VECTORS - 1) * THREADS < n_vectors; i += stride) {
    float4 held[VECTORS];
#pragma unroll
    for (int v = 0; v < VECTORS; v++) held[v] = from[i + v * THREADS];
#pragma unroll
    for (int v = 0; v < VECTORS; v++) to[i + v * THREADS] = held[v];
  }
#pragma unroll 1
  for (; i < n_vectors; i += THREADS) to[i] = from[i];  // the last stride is not a whole one

  // Up to three elements do not fill a vector. The first block carries them one by one.
  const long long tail = n_vectors * 4 + threadIdx.x;
  if (blockIdx.x == 0 && tail < N) y[tail] = x[tail];
}
