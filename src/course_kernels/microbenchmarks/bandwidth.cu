// Bandwidth: every multiprocessor reads as fast as it can from one level of memory, 16 bytes a thread at a time.
//
// Contract  bandwidth.py
// Idea      enough loads under way that the level is never idle. Everything is read once; then all blocks wait for each
//           other; then the clocks start, of the multiprocessor and of the whole card
// Limits    everything that is read is added up, so that no load can be left out. And `nudge`, always 0, moves the
//           address from pass to pass: without it the assembler sees the same address again, reads once, and adds up
//           the same register many times. The sum would be right
// Source    Jia et al. 2018, arXiv:1804.06826, chapter 3

#include "whole_grid.cuh"

constexpr int THREADS = 512;
constexpr int UNROLL = 4;                        // vectors a thread asks for before it waits
constexpr int VECTORS = UNROLL * THREADS;        // 32 KB, what a block reads in one pass

__device__ inline uint4 load_shared(unsigned address) {
  uint4 v;
  asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
               : "r"(address));
  return v;
}
__device__ inline uint4 load_l1(const uint4 *address) {
  uint4 v;
  asm volatile("ld.global.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
               : "l"(address));
  return v;
}
__device__ inline uint4 load_l2(const uint4 *address) {  // cg: never in L1
  uint4 v;
  asm volatile("ld.global.cg.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
               : "l"(address));
  return v;
}

__device__ inline unsigned added(uint4 v) { return v.x + v.y + v.z + v.w; }

// Where the blocks write what they found.
struct Told {
  long long *times;   // [gridDim.x, 3]: cycles of its multiprocessor; nanoseconds of the card when it began, and ended
  unsigned *sums;     // [gridDim.x, THREADS]
  unsigned *places;   // [gridDim.x]: its multiprocessor
  unsigned *arrived;  // [1]: blocks that are warm; 0 when the launch begins
};

// All blocks begin together, when the last of them is warm: before that, some would read while others still warm up.
// A barrier that asks every thread about its sum lets nobody pass whose loads are still under way, so the clock starts
// when all is warm, and stops when the last thread holds all it asked for.
template <typename Pass>
__device__ void timed(Pass pass, unsigned warm, int passes, const Told &told) {
  unsigned sum = 0;
  __syncthreads_or(warm == 1);
  const long long began = all_blocks_meet(told.arrived);
  const long long start = clock_now();
#pragma unroll 1
  for (int p = 0; p < passes; p++) sum += pass();
  __syncthreads_or(sum == 1);
  const long long end = clock_now();
  if (threadIdx.x == 0) {
    long long *mine = told.times + 3 * blockIdx.x;
    mine[0] = end - start;
    mine[1] = began;
    mine[2] = nanoseconds_now();
    told.places[blockIdx.x] = multiprocessor();
  }
  told.sums[blockIdx.x * THREADS + threadIdx.x] = sum;
}

// grid: one block a multiprocessor      block: THREADS
extern "C" __global__ void read_shared(const uint4 *x,  // [VECTORS]
                                       int nudge, int passes, long long *times, unsigned *sums,
                                       unsigned *places, unsigned *arrived) {
  __shared__ uint4 held[VECTORS];
  for (int i = threadIdx.x; i < VECTORS; i += THREADS) held[i] = x[i];
  __syncthreads();
  unsigned mine = static_cast<unsigned>(__cvta_generic_to_shared(held + threadIdx.x));
  timed(
      [&] {
        unsigned sum = 0;
#pragma unroll
        for (int u = 0; u < UNROLL; u++) sum += added(load_shared(mine + u * THREADS * 16));
        mine += nudge;
        return sum;
      },
      0, passes, {times, sums, places, arrived});
}

// Every block reads a part of x of its own, again and again.
extern "C" __global__ void read_l1(const uint4 *x,  // [gridDim.x, VECTORS]
                                   int nudge, int passes, long long *times, unsigned *sums,
                                   unsigned *places, unsigned *arrived) {
  const uint4 *mine = x + static_cast<long long>(VECTORS) * blockIdx.x + threadIdx.x;
  unsigned warm = 0;
#pragma unroll
  for (int u = 0; u < UNROLL; u++) warm += added(load_l1(mine + u * THREADS));
  mine += nudge;
  timed(
      [&] {
        unsigned sum = 0;
#pragma unroll
        for (int u = 0; u < UNROLL; u++) sum += added(load_l1(mine + u * THREADS));
        mine += nudge;
        return sum;
      },
      warm, passes, {times, sums, places, arrived});
}

// All threads of the grid together walk over x, round and round; each load takes all of them one step further. A
// vector is then read by another multiprocessor in every lap, as long as the threads do not divide the vectors.
extern "C" __global__ void read_l2(const uint4 *x,  // [vectors]
                                   unsigned vectors, int passes, long long *times, unsigned *sums,
                                   unsigned *places, unsigned *arrived) {
  const unsigned thread = blockIdx.x * THREADS + threadIdx.x, threads = gridDim.x * THREADS;
  unsigned warm = 0;
  for (unsigned i = thread; i < vectors; i += threads) warm += added(load_l2(x + i));
  unsigned at = thread % vectors;
  const unsigned step = threads % vectors;
  timed(
      [&] {
        unsigned sum = 0;
#pragma unroll
        for (int u = 0; u < UNROLL; u++) {
          sum += added(load_l2(x + at));
          at += step;
          if (at >= vectors) at -= vectors;
        }
        return sum;
      },
      warm, passes, {times, sums, places, arrived});
}
