// The bytes of a product, read once and added up as whole words: no product, no format.
//
// Contract  bare_read.py
// Idea      what any kernel of this folder must do at least. Blocks stay and stride through memory; a thread asks for
//           several vectors before it adds the first
// Against   nothing: what the kernels of this folder are held against
// Limits    everything that is read is added up, so that no load can be left out; a warp writes one word
// Source    bytes_in_flight/k01_limited, without its writes
#include "fp4_instructions.cuh"

#ifndef VECTORS
#error "compile with -D VECTORS=1, 2, 4 or 8"
#endif

constexpr int THREADS = 256;  // of one block

__device__ inline unsigned added(uint4 v) { return v.x + v.y + v.z + v.w; }

// The sum of what this thread reads of x: of every `stride` vectors, VECTORS that are THREADS apart.
__device__ inline unsigned read_all(const uint4 *x, long long vectors) {
  const long long stride = static_cast<long long>(gridDim.x) * VECTORS * THREADS;
  unsigned sum = 0;
  long long i = static_cast<long long>(blockIdx.x) * VECTORS * THREADS + threadIdx.x;
#pragma unroll 1
  for (; i + (VECTORS - 1) * THREADS < vectors; i += stride) {
    uint4 held[VECTORS];
#pragma unroll
    for (int v = 0; v < VECTORS; v++) held[v] = streamed(x + i + v * THREADS);
#pragma unroll
    for (int v = 0; v < VECTORS; v++) sum += added(held[v]);
  }
#pragma unroll 1
  for (int v = 0; v < VECTORS; v++, i += THREADS) {  // the last stride is not a whole one
    if (i < vectors) sum += added(streamed(x + i));
  }
  return sum;
}

// grid: as many blocks as are on the card at once      block: THREADS
extern "C" __global__ void __launch_bounds__(THREADS)
    bare_read(const uint4 *a,         // [vectors_a]
              const uint4 *scales_a,  // [vectors_scales_a]
              const uint4 *b,         // [vectors_b]
              const uint4 *scales_b,  // [vectors_scales_b]
              unsigned *sums,         // [gridDim.x * THREADS / 32]
              long long vectors_a, long long vectors_scales_a, long long vectors_b, long long vectors_scales_b) {
  unsigned sum = read_all(a, vectors_a) + read_all(scales_a, vectors_scales_a);
  sum += read_all(b, vectors_b) + read_all(scales_b, vectors_scales_b);
#pragma unroll
  for (int step = 16; step; step /= 2) {
    sum += __float_as_uint(__shfl_xor_sync(~0u, __uint_as_float(sum), step));  // bits travel as they are
  }
  if (threadIdx.x % 32 == 0) sums[(blockIdx.x * THREADS + threadIdx.x) / 32] = sum;
}
