// The bytes of a product, read once and added up as whole words, 1: plain loads of 16 bytes.
//
// Contract  bare_read.py
// Idea      what any kernel of this folder must do at least. Blocks stride through memory; a thread asks for several
//           vectors before it adds the first
// Against   nothing: what the kernels of this folder are held against
// Limits    everything that is read is added up, so that no load can be left out; a warp writes one word. What is under
//           way needs registers
// Next      bare_read_ring, bare_read_bulk: other ways to have as much under way
// Source    bytes_in_flight/k01_limited, without its writes
#include "fp4_instructions.cuh"
#include "bare_read.cuh"

#ifndef VECTORS
#error "compile with -D VECTORS=1, 2, 4 or 8"
#endif

constexpr int THREADS = 256;  // of one block

// grid: any      block: THREADS
extern "C" __global__ void __launch_bounds__(THREADS)
    bare_read(const uint4 *a,         // [of_a]
              const uint4 *scales_a,  // [of_scales_a]
              const uint4 *b,         // [of_b]
              const uint4 *scales_b,  // [of_scales_b]
              unsigned *sums,         // [gridDim.x * THREADS / 32]
              long long of_a, long long of_scales_a, long long of_b, long long of_scales_b) {
  const Vectors x = {a, scales_a, b, scales_b, of_a, of_scales_a, of_b, of_scales_b};
  const long long all = x.all(), stride = static_cast<long long>(gridDim.x) * VECTORS * THREADS;
  unsigned sum = 0;
  long long i = static_cast<long long>(blockIdx.x) * VECTORS * THREADS + threadIdx.x;
#pragma unroll 1
  for (; i + (VECTORS - 1) * THREADS < all; i += stride) {
    uint4 held[VECTORS];
#pragma unroll
    for (int v = 0; v < VECTORS; v++) held[v] = streamed(x.at(i + v * THREADS));
#pragma unroll
    for (int v = 0; v < VECTORS; v++) sum += added(held[v]);
  }
#pragma unroll 1
  for (int v = 0; v < VECTORS; v++, i += THREADS) {  // the last stride is not a whole one
    if (i < all) sum += added(streamed(x.at(i)));
  }
  write_sum(sum, sums);
}
