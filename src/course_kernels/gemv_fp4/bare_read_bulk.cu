// The bytes of a product, read once and added up as whole words, 3: the copy engine brings whole chunks (TMA).
//
// Contract  bare_read.py
// Idea      one lane of a warp asks for a chunk, a single instruction, into the warp's own ring in shared memory; a barrier
//           says when its bytes are there. No address is worked out but the chunk's
// Against   bare_read_ring, in which every lane asks for every 16 bytes itself
// Limits    Hopper; a chunk is of one tensor, so that each may end with a short one
// Source    PTX ISA, cp.async.bulk
#include "hopper/tma.cuh"
#include "bare_read.cuh"

#ifndef VECTORS
#error "compile with -D VECTORS=4 or more: of a lane, in a chunk"
#endif
#ifndef STAGES
#error "compile with -D STAGES=2 or more: chunks under way for a warp"
#endif

constexpr int WARPS = 8;              // of one block
constexpr int CHUNK = 32 * VECTORS;   // vectors

// Where a chunk is, and how many vectors it has.
struct Chunk {
  const uint4 *from;
  int vectors;
};

__device__ inline long long chunks_of(long long vectors) { return (vectors + CHUNK - 1) / CHUNK; }

__device__ inline Chunk part_of(const uint4 *x, long long vectors, long long chunk) {
  const long long left = vectors - chunk * CHUNK;
  return {x + chunk * CHUNK, static_cast<int>(left < CHUNK ? left : CHUNK)};
}

__device__ inline Chunk chunk_at(const Vectors &x, long long i) {
  if (i < chunks_of(x.of_a)) return part_of(x.a, x.of_a, i);
  i -= chunks_of(x.of_a);
  if (i < chunks_of(x.of_scales_a)) return part_of(x.scales_a, x.of_scales_a, i);
  i -= chunks_of(x.of_scales_a);
  if (i < chunks_of(x.of_b)) return part_of(x.b, x.of_b, i);
  return part_of(x.scales_b, x.of_scales_b, i - chunks_of(x.of_b));
}

// grid: as many blocks as are on the card at once      block: 32 * WARPS      shared: WARPS * STAGES * CHUNK vectors
extern "C" __global__ void __launch_bounds__(32 * WARPS)
    bare_read_bulk(const uint4 *a,         // [of_a]
                   const uint4 *scales_a,  // [of_scales_a]
                   const uint4 *b,         // [of_b]
                   const uint4 *scales_b,  // [of_scales_b]
                   unsigned *sums,         // [gridDim.x * WARPS]
                   long long of_a, long long of_scales_a, long long of_b, long long of_scales_b) {
  extern __shared__ __align__(128) uint4 shared[];
  __shared__ Barrier full[WARPS][STAGES];
  const Vectors x = {a, scales_a, b, scales_b, of_a, of_scales_a, of_b, of_scales_b};
  const long long all = chunks_of(of_a) + chunks_of(of_scales_a) + chunks_of(of_b) + chunks_of(of_scales_b);
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  uint4 *ring = shared + warp * (STAGES * CHUNK);  // [STAGES, CHUNK]
  const long long stride = static_cast<long long>(gridDim.x) * WARPS;
  const long long first = static_cast<long long>(blockIdx.x) * WARPS + warp;
  auto ask = [&](int stage, long long i) {  // by one lane; nothing past the last chunk
    if (i >= all) return;
    const Chunk chunk = chunk_at(x, i);
    arrive_and_expect_bytes(&full[warp][stage], chunk.vectors * 16);
    load_bytes(ring + stage * CHUNK, chunk.from, chunk.vectors * 16, &full[warp][stage]);
  };
  if (lane == 0) {
    for (int s = 0; s < STAGES; s++) barrier_init(&full[warp][s], 1);
    fence_barrier_init();
    for (int s = 0; s < STAGES; s++) ask(s, first + s * stride);
  }
  __syncwarp();
  unsigned sum = 0, parity = 0;
  int stage = 0;
#pragma unroll 1
  for (long long i = first; i < all; i += stride) {
    const int vectors = chunk_at(x, i).vectors;
    wait(&full[warp][stage], parity);
#pragma unroll
    for (int v = 0; v < VECTORS; v++) {
      if (v * 32 + lane < vectors) sum += added(ring[stage * CHUNK + v * 32 + lane]);
    }
    __syncwarp();  // all lanes have read the chunk
    if (lane == 0) ask(stage, i + STAGES * stride);
    if (++stage == STAGES) stage = 0, parity ^= 1;
  }
  write_sum(sum, sums);
}
