// Blackwell's matrix instruction (tcgen05), the memory that its sums are in, and what belongs to it.
//
// Contract  one thread asks for copies and products, and they are done in that order. `tcgen05_commit` lets an mbarrier
//           know when all that this thread has asked for is done: then shared memory may be written again, and the sums
//           may be read. The sums are in tensor memory (TMEM), which a block asks for in columns and gives back before
//           it ends. BLOCKS is 1, or 2 for a pair: two blocks of a cluster, 2i and 2i + 1, of which the first asks, for
//           both; every call of one kernel has the same BLOCKS
// Layout    TMEM has 128 lanes of 512 columns of 32 bits; an address is lane << 16 | column. Sums of 128 x N: row m in
//           lane m, column n in column n. Of a pair's 256 x N each block has 128 rows. Scales of 128 rows: four columns;
//           row r in lane r % 32 of column r / 32, and again in each of the four quarters of the lanes
// Limits    sm_100a and sm_103a: data-centre Blackwell. An RTX 50 (sm_120) has none of this
// Source    PTX ISA, tcgen05: Tensor memory, Data path layout, Block scaling, Memory consistency model
#pragma once

#include "descriptors.cuh"
#include <hopper/tma.cuh>

// --- tensor memory --------------------------------------------------------------------------------

// Columns of TMEM: a power of two, 32 to 512. A whole warp calls, of a pair one of each block. The address comes to
// `where` in shared memory; who reads it there has passed a barrier since, between the two fences below. It waits until
// other blocks on the multiprocessor have given back what they hold.
template <int BLOCKS>
__device__ inline void tmem_allocate(unsigned *where, int columns) {
  if constexpr (BLOCKS == 1) {
    asm volatile("tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%0], %1;" ::"r"(address_in_shared(where)),
                 "r"(columns)
                 : "memory");
  } else {
    asm volatile("tcgen05.alloc.cta_group::2.sync.aligned.shared::cta.b32 [%0], %1;" ::"r"(address_in_shared(where)),
                 "r"(columns)
                 : "memory");
  }
}

// This block asks for no more: a next one may. A whole warp calls.
template <int BLOCKS>
__device__ inline void tmem_no_more() {
  if constexpr (BLOCKS == 1) asm volatile("tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;");
  else asm volatile("tcgen05.relinquish_alloc_permit.cta_group::2.sync.aligned;");
}

// The warp that asked gives back the same columns, when nobody reads or writes them any more.
template <int BLOCKS>
__device__ inline void tmem_give_back(unsigned tmem, int columns) {
  if constexpr (BLOCKS == 1) {
    asm volatile("tcgen05.dealloc.cta_group::1.sync.aligned.b32 %0, %1;" ::"r"(tmem), "r"(columns));
  } else {
    asm volatile("tcgen05.dealloc.cta_group::2.sync.aligned.b32 %0, %1;" ::"r"(tmem), "r"(columns));
  }
}

// tcgen05 instructions of different threads are ordered by a barrier between these two: before it, and after it. After
// an mbarrier on which `tcgen05_commit` or the copy engine arrives, only the second is needed.
__device__ inline void tcgen05_before_barrier() { asm volatile("tcgen05.fence::before_thread_sync;" ::: "memory"); }
__device__ inline void tcgen05_after_barrier() { asm volatile("tcgen05.fence::after_thread_sync;" ::: "memory"); }

// --- products -------------------------------------------------------------------------------------

// d [128, N] (+)= A [128, 16] @ B [16, N]; of a pair d [256, N], A and B half from each block, whose tiles have the same
// shared address. `how` is an `f16_instruction`. One thread calls.
template <int BLOCKS>
__device__ inline void multiply_f16(unsigned d, Descriptor a, Descriptor b, unsigned how, bool add) {
  if constexpr (BLOCKS == 1) {
    asm volatile(
        "{\n.reg .pred p;\nsetp.ne.b32 p, %4, 0;\ntcgen05.mma.cta_group::1.kind::f16 [%0], %1, %2, %3, p;\n}" ::"r"(d),
        "l"(a), "l"(b), "r"(how), "r"(static_cast<unsigned>(add))
        : "memory");
  } else {
    asm volatile(
        "{\n.reg .pred p;\nsetp.ne.b32 p, %4, 0;\ntcgen05.mma.cta_group::2.kind::f16 [%0], %1, %2, %3, p;\n}" ::"r"(d),
        "l"(a), "l"(b), "r"(how), "r"(static_cast<unsigned>(add))
        : "memory");
  }
}

// d [128, N] (+)= the same of 64 of k, in E2M1, each 16 of k of a row of A and of a column of B times a scale in E4M3.
// `scales_a` and `scales_b` are in TMEM, `how` is an `nvfp4_instruction`. A and B lie along k, two numbers in a byte, the
// first in the lower half. One thread calls.
__device__ inline void multiply_nvfp4(unsigned d, Descriptor a, Descriptor b, unsigned how, unsigned scales_a,
                                      unsigned scales_b, bool add) {
  asm volatile(
      "{\n.reg .pred p;\nsetp.ne.b32 p, %4, 0;\n"
      "tcgen05.mma.cta_group::1.kind::mxf4nvf4.block_scale.scale_vec::4X [%0], %1, %2, %3, [%5], [%6], p;\n}" ::"r"(d),
      "l"(a), "l"(b), "r"(how), "r"(static_cast<unsigned>(add)), "r"(scales_a), "r"(scales_b)
      : "memory");
}

// d [128, N] (+)= the same of 32 of k, in E4M3, the 32 of a row of A and of a column of B times a scale in E8M0, a power of
// two. `how` is an `mxfp8_instruction`, and says which of the four scales in a word.
__device__ inline void multiply_mxfp8(unsigned d, Descriptor a, Descriptor b, unsigned how, unsigned scales_a,
                                      unsigned scales_b, bool add) {
  asm volatile(
      "{\n.reg .pred p;\nsetp.ne.b32 p, %4, 0;\n"
      "tcgen05.mma.cta_group::1.kind::mxf8f6f4.block_scale.scale_vec::1X [%0], %1, %2, %3, [%5], [%6], p;\n}" ::"r"(d),
      "l"(a), "l"(b), "r"(how), "r"(static_cast<unsigned>(add)), "r"(scales_a), "r"(scales_b)
      : "memory");
}

// 512 bytes of scales from shared memory (`scales_in_shared`) to four columns of TMEM, once for each quarter of the
// lanes. Products that the same thread asks for afterwards see them. One thread calls.
__device__ inline void copy_scales(unsigned tmem, Descriptor from) {
  asm volatile("tcgen05.cp.cta_group::1.32x128b.warpx4 [%0], %1;" ::"r"(tmem), "l"(from) : "memory");
}

// One arrival at `b`, of a pair at this place in both blocks, once all copies and products of this thread are done.
template <int BLOCKS>
__device__ inline void tcgen05_commit(Barrier *b) {
  if constexpr (BLOCKS == 1) {
    asm volatile("tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%0];" ::"r"(address_in_shared(b))
                 : "memory");
  } else {
    asm volatile(
        "tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 [%0], %1;" ::"r"(
            address_in_shared(b)),
        "h"(static_cast<unsigned short>(3))
        : "memory");
  }
}

// --- sums to registers ----------------------------------------------------------------------------

#define SUMS_8(d, i) \
  "=f"(d[i]), "=f"(d[i + 1]), "=f"(d[i + 2]), "=f"(d[i + 3]), "=f"(d[i + 4]), "=f"(d[i + 5]), "=f"(d[i + 6]), "=f"(d[i + 7])

// 32 columns, one lane for each thread of the warp; warp w reaches lanes 32 * (w % 4) to 32 * (w % 4) + 31 and no others,
// and `tmem` names the first of them. The numbers are there after `wait_for_sums`. The whole warp calls.
__device__ inline void load_sums(float (&d)[32], unsigned tmem) {
  asm volatile(
      "tcgen05.ld.sync.aligned.32x32b.x32.b32 {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
      "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, [%32];"
      : SUMS_8(d, 0), SUMS_8(d, 8), SUMS_8(d, 16), SUMS_8(d, 24)
      : "r"(tmem)
      : "memory");
}
#undef SUMS_8

// Until all that this thread has loaded from TMEM is there. Name the sums: the compiler reads none of them earlier.
__device__ inline void wait_for_sums(float (&d)[32]) {
  asm volatile("tcgen05.wait::ld.sync.aligned;" ::: "memory");
#pragma unroll
  for (int i = 0; i < 32; i++) asm volatile("" : "+f"(d[i])::"memory");
}

// --- tiles for a pair -----------------------------------------------------------------------------

// The box whose first element is at these coordinates, to this block's shared memory; its bytes arrive at the barrier
// that lies in the first block of the pair where `b` lies here.
__device__ inline void load_tile_for_pair(void *to, const TensorMap &map, Barrier *b, int x, int y) {
  asm volatile(
      "{\n.reg .b32 rank, first, there;\nmov.u32 rank, %%cluster_ctarank;\nand.b32 first, rank, 0xfffffffe;\n"
      "mapa.shared::cluster.u32 there, %2, first;\n"
      "cp.async.bulk.tensor.2d.cta_group::2.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4}], "
      "[there];\n}" ::"r"(address_in_shared(to)),
      "l"(&map), "r"(address_in_shared(b)), "r"(x), "r"(y)
      : "memory");
}
