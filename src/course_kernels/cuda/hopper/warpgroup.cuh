// What the warps of a Hopper kernel with roles do besides copying: registers, barriers, clusters, rounding.
//
// Limits    compute capability 9.0 and above, `registers_up` and `registers_down` sm_90a
// Source    PTX ISA, setmaxnreg, barrier, elect.sync, barrier.cluster, griddepcontrol, stmatrix, ex2 and cvt
#pragma once

#include <hopper/address.cuh>
#include <hopper/products.cuh>

// --- roles ----------------------------------------------------------------------------------------

// Registers of each thread from here on: a multiple of 8, from 24 to 256. All warps of a warpgroup call it. Up waits
// until others have given as many back. The kernel needs __launch_bounds__(threads, 1), and each role is one branch of
// a single if.
template <int REGISTERS>
__device__ inline void registers_up() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(REGISTERS));
}

template <int REGISTERS>
__device__ inline void registers_down() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(REGISTERS));
}

// True for one thread of the warp, always the same; all 32 call.
__device__ inline bool elect_one() {
  unsigned mine;
  asm volatile("{\n.reg .pred p;\nelect.sync _|p, 0xffffffff;\nselp.u32 %0, 1, 0, p;\n}" : "=r"(mine)::"memory");
  return mine != 0;
}

// A number that is the same in the whole warp, said so that the compiler knows: for the branch between roles.
__device__ inline int same_in_warp(int x) { return __shfl_sync(0xffffffffu, x, 0); }

// Barrier `id`, 1 to 15 (0 is __syncthreads), of so many threads, a multiple of 32: those who wait and those who only
// arrive are counted together. Whole warps call.
__device__ inline void named_barrier_wait(int id, int threads) {
  asm volatile("bar.sync %0, %1;" ::"r"(id), "r"(threads) : "memory");
}

__device__ inline void named_barrier_arrive(int id, int threads) {
  asm volatile("bar.arrive %0, %1;" ::"r"(id), "r"(threads) : "memory");
}

// --- clusters -------------------------------------------------------------------------------------

__device__ inline unsigned cluster_rank() {
  unsigned rank;
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return rank;
}

__device__ inline unsigned cluster_size() {
  unsigned blocks;
  asm volatile("mov.u32 %0, %%cluster_nctarank;" : "=r"(blocks));
  return blocks;
}

// All threads of all blocks of the cluster arrive, and wait for all. Nobody may end while others still write to its
// shared memory or arrive at its barriers, so a kernel ends with this pair.
__device__ inline void cluster_arrive() { asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory"); }

__device__ inline void cluster_wait() { asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory"); }

// --- the grid before this one, and the one after ---------------------------------------------------

// The next grid of the stream may begin once all blocks have said this or ended. It does not see their results by that.
__device__ inline void let_next_grid_begin() { asm volatile("griddepcontrol.launch_dependents;" ::: "memory"); }

// Until the grid before this one has ended and what it wrote is there. Nothing it writes or reads is touched before.
__device__ inline void wait_for_last_grid() { asm volatile("griddepcontrol.wait;" ::: "memory"); }

// --- numbers --------------------------------------------------------------------------------------

// 2 to the power of x, to about 22 bits; small results become 0.
__device__ inline float power_of_2(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

// Two numbers rounded to 16 bits, the first in the lower half.
template <class T = Bf16x16>
__device__ inline unsigned rounded_pair(float first, float second) {
  unsigned both;
  if constexpr (wgmma::same<T, Bf16x16>)
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(second), "f"(first));
  else
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(second), "f"(first));
  return both;
}

// One of these two again, the second or the first.
template <class T = Bf16x16>
__device__ inline float unpacked(unsigned both, bool second) {
  if constexpr (wgmma::same<T, Bf16x16>) return __uint_as_float(second ? both & 0xffff0000 : both << 16);
  float x;
  asm("{\n.reg .b16 lower, upper;\nmov.b32 {lower, upper}, %1;\ncvt.f32.f16 %0, lower;\n}"
      : "=f"(x)
      : "r"(second ? both >> 16 : both));
  return x;
}

// Columns 16 * step to 16 * step + 15 of the sums d, as the A of another product: see the layout in products.cuh.
template <class T = Bf16x16, int R>
__device__ inline void operand(unsigned (&a)[4], const float (&d)[R], int step) {
#pragma unroll
  for (int i = 0; i < 4; i++) a[i] = rounded_pair<T>(d[8 * step + 2 * i], d[8 * step + 2 * i + 1]);
}

// Four 8 x 8 matrices of 16-bit numbers to shared memory, by a warp. Lane l names 16 bytes, where row l % 8 of matrix
// l / 8 is to lie. Of matrix i it gives, in held[i], the numbers 2 * (l % 4) and the next of row l / 4: what
// `rounded_pair` makes of sums. Threads write here: `fence_async` before the copy engine takes it.
__device__ inline void store_matrices(void *row, const unsigned (&held)[4]) {
  asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(address_in_shared(row)),
               "r"(held[0]), "r"(held[1]), "r"(held[2]), "r"(held[3])
               : "memory");
}

// The same, and each matrix is transposed on its way.
__device__ inline void store_matrices_transposed(void *row, const unsigned (&held)[4]) {
  asm volatile("stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(address_in_shared(row)),
               "r"(held[0]), "r"(held[1]), "r"(held[2]), "r"(held[3])
               : "memory");
}
