// The bytes of a product, read once and added up as whole words, 2: asynchronous copies of 16 bytes.
//
// Contract  bare_read.py
// Idea      the way of k12_ring: a lane copies ahead, for itself alone, into places of its own in shared memory, so that
//           no register waits. With two stages as many bytes are under way as there
// Against   bare_read, whose vectors under way each hold four registers, and none is under way while a thread adds
// Limits    compute capability 8.0 and above
// Source    PTX ISA, cp.async
#include "asynchronous_copy.cuh"
#include "bare_read.cuh"

#ifndef STAGES
#error "compile with -D STAGES=2 or more"
#endif

constexpr int THREADS = 512;  // of one block
constexpr int VECTORS = 4;    // of a lane, in a stage

// grid: as many blocks as are on the card at once      block: THREADS      shared: STAGES * VECTORS * THREADS vectors
extern "C" __global__ void __launch_bounds__(THREADS)
    bare_read_ring(const uint4 *a,         // [of_a]
                   const uint4 *scales_a,  // [of_scales_a]
                   const uint4 *b,         // [of_b]
                   const uint4 *scales_b,  // [of_scales_b]
                   unsigned *sums,         // [gridDim.x * THREADS / 32]
                   long long of_a, long long of_scales_a, long long of_b, long long of_scales_b) {
  extern __shared__ uint4 ring[];  // [STAGES, VECTORS, THREADS]
  const Vectors x = {a, scales_a, b, scales_b, of_a, of_scales_a, of_b, of_scales_b};
  const long long all = x.all(), stride = static_cast<long long>(gridDim.x) * VECTORS * THREADS;
  long long asked = static_cast<long long>(blockIdx.x) * VECTORS * THREADS + threadIdx.x;
  auto ask = [&](uint4 *stage) {  // past the end: zeros
#pragma unroll
    for (int v = 0; v < VECTORS; v++) {
      const long long i = asked + v * THREADS;
      copy_16_bytes(stage + v * THREADS, x.at(i < all ? i : 0), i < all ? 16 : 0);
    }
    asked += stride;
    close_group();
  };
  uint4 *stage = ring + threadIdx.x, *const end = stage + STAGES * VECTORS * THREADS;
  for (int s = 0; s < STAGES; s++) ask(stage + s * VECTORS * THREADS);
  unsigned sum = 0;
#pragma unroll 1
  for (long long i = static_cast<long long>(blockIdx.x) * VECTORS * THREADS; i < all; i += stride) {
    wait_for_all_but<STAGES - 1>();
#pragma unroll
    for (int v = 0; v < VECTORS; v++) sum += added(stage[v * THREADS]);
    ask(stage);  // into the places that were just read
    stage += VECTORS * THREADS;
    if (stage == end) stage -= STAGES * VECTORS * THREADS;
  }
  wait_for_all_but<0>();
  write_sum(sum, sums);
}
