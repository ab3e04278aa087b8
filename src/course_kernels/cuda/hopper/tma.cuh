// The copy engine (TMA): one thread asks, and a tile of a tensor moves between global and shared memory.
//
// Contract  a load counts its bytes on an mbarrier, also those past the tensor's edges, which come as zeros; a store
//           leaves out what lies past them. A load may begin before its tensor, at a negative coordinate; a store may
//           not: seen on an H200, which calls it an illegal instruction. Stores and reductions are of this thread's bulk
//           groups: `close_bulk_group` ends one, and the thread that asked waits. A coordinate counts elements, the
//           innermost dimension first
// Limits    compute capability 9.0 and above. A tile's shared address is a multiple of 128 bytes (for a swizzle of 128
//           bytes of 1024, of 64 of 512, of 32 of 256); of copies in one dimension, addresses and bytes of 16
// Source    PTX ISA, cp.async.bulk, cp.async.bulk.tensor, cp.reduce.async.bulk and createpolicy; CUDA driver API,
//           cuTensorMapEncodeTiled
#pragma once

#include <hopper/mbarrier.cuh>

// What the driver encodes of a tensor, its box and its swizzle (prepared.py, `tensor_map`). A kernel takes it as
// `const __grid_constant__ TensorMap map`: the engine wants an address, and a parameter of this kind has one.
struct alignas(64) TensorMap {
  unsigned long long words[16];
};

// How long L2 should keep what passes.
struct CachePolicy {
  unsigned long long bits;
};

// Read once: the first to leave.
__device__ inline CachePolicy evict_first() {
  CachePolicy policy;
  asm("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy.bits));
  return policy;
}

// Read by many: the last to leave.
__device__ inline CachePolicy evict_last() {
  CachePolicy policy;
  asm("createpolicy.fractional.L2::evict_last.b64 %0, 1.0;" : "=l"(policy.bits));
  return policy;
}

// Fetch the map itself, so that the first copy does not wait for it.
__device__ inline void prefetch(const TensorMap &map) {
  asm volatile("prefetch.tensormap [%0];" ::"l"(&map) : "memory");
}

// One instruction, for two to five coordinates. The operands: %0 the shared address, %1 the map, %2 the barrier, %3 the
// mask of blocks, %4 the policy, %5 and on the coordinates; a form names those it has.
#define TILE_INSTRUCTION(NAME, FORM, LEFT, RIGHT, SHARED, MAP, BARRIER, MASK, POLICY, AT)                             \
  static_assert(2 <= sizeof...(At) && sizeof...(At) <= 5, "two to five coordinates");                                 \
  const int at[5] = {static_cast<int>(AT)...};                                                                        \
  if constexpr (sizeof...(At) == 2) {                                                                                 \
    asm volatile(NAME "2d" FORM LEFT "{%5, %6}" RIGHT ::"r"(SHARED), "l"(&MAP), "r"(BARRIER), "h"(MASK), "l"(POLICY), \
                 "r"(at[0]), "r"(at[1]) : "memory");                                                                  \
  } else if constexpr (sizeof...(At) == 3) {                                                                          \
    asm volatile(NAME "3d" FORM LEFT "{%5, %6, %7}" RIGHT ::"r"(SHARED), "l"(&MAP), "r"(BARRIER), "h"(MASK),          \
                 "l"(POLICY), "r"(at[0]), "r"(at[1]), "r"(at[2]) : "memory");                                         \
  } else if constexpr (sizeof...(At) == 4) {                                                                          \
    asm volatile(NAME "4d" FORM LEFT "{%5, %6, %7, %8}" RIGHT ::"r"(SHARED), "l"(&MAP), "r"(BARRIER), "h"(MASK),      \
                 "l"(POLICY), "r"(at[0]), "r"(at[1]), "r"(at[2]), "r"(at[3]) : "memory");                             \
  } else {                                                                                                            \
    asm volatile(NAME "5d" FORM LEFT "{%5, %6, %7, %8, %9}" RIGHT ::"r"(SHARED), "l"(&MAP), "r"(BARRIER), "h"(MASK),  \
                 "l"(POLICY), "r"(at[0]), "r"(at[1]), "r"(at[2]), "r"(at[3]), "r"(at[4]) : "memory");                 \
  }
#define LOAD_FORM ".shared::cluster.global.mbarrier::complete_tx::bytes"

// --- tiles to shared memory -----------------------------------------------------------------------

// The box whose first element is at these coordinates, to shared memory; its bytes arrive at `b`.
template <class... At>
__device__ inline void load_tile(void *to, const TensorMap &map, Barrier *b, At... x) {
  TILE_INSTRUCTION("cp.async.bulk.tensor.", LOAD_FORM, " [%0], [%1, ", "], [%2];", address_in_shared(to), map,
                   address_in_shared(b), static_cast<unsigned short>(0), 0ull, x)
}

template <class... At>
__device__ inline void load_tile(void *to, const TensorMap &map, Barrier *b, CachePolicy policy, At... x) {
  TILE_INSTRUCTION("cp.async.bulk.tensor.", LOAD_FORM ".L2::cache_hint", " [%0], [%1, ", "], [%2], %4;",
                   address_in_shared(to), map, address_in_shared(b), static_cast<unsigned short>(0), policy.bits, x)
}

// The same box to the same place in every block of the cluster whose bit is set in `blocks`; its bytes arrive at the
// barrier that lies there where `b` lies here, all of them at each.
template <class... At>
__device__ inline void load_tile_multicast(void *to, const TensorMap &map, Barrier *b, unsigned short blocks, At... x) {
  TILE_INSTRUCTION("cp.async.bulk.tensor.", LOAD_FORM ".multicast::cluster", " [%0], [%1, ", "], [%2], %3;",
                   address_in_shared(to), map, address_in_shared(b), blocks, 0ull, x)
}

template <class... At>
__device__ inline void load_tile_multicast(void *to, const TensorMap &map, Barrier *b, unsigned short blocks,
                                           CachePolicy policy, At... x) {
  TILE_INSTRUCTION("cp.async.bulk.tensor.", LOAD_FORM ".multicast::cluster.L2::cache_hint", " [%0], [%1, ",
                   "], [%2], %3, %4;", address_in_shared(to), map, address_in_shared(b), blocks, policy.bits, x)
}

// --- tiles from shared memory ---------------------------------------------------------------------

template <class... At>
__device__ inline void store_tile(const TensorMap &map, const void *from, At... x) {
  TILE_INSTRUCTION("cp.async.bulk.tensor.", ".global.shared::cta.bulk_group", " [%1, ", "], [%0];",
                   address_in_shared(from), map, 0, static_cast<unsigned short>(0), 0ull, x)
}

template <class... At>
__device__ inline void store_tile(const TensorMap &map, const void *from, CachePolicy policy, At... x) {
  TILE_INSTRUCTION("cp.async.bulk.tensor.", ".global.shared::cta.bulk_group.L2::cache_hint", " [%1, ", "], [%0], %4;",
                   address_in_shared(from), map, 0, static_cast<unsigned short>(0), policy.bits, x)
}

// Add the tile to what is there. The map says the type; the order in which blocks come is open, so float sums may
// differ from run to run.
template <class... At>
__device__ inline void add_tile(const TensorMap &map, const void *from, At... x) {
  TILE_INSTRUCTION("cp.reduce.async.bulk.tensor.", ".global.shared::cta.add.bulk_group", " [%1, ", "], [%0];",
                   address_in_shared(from), map, 0, static_cast<unsigned short>(0), 0ull, x)
}

#undef LOAD_FORM
#undef TILE_INSTRUCTION

// --- one dimension, without a map -----------------------------------------------------------------

__device__ inline void load_bytes(void *to, const void *from, unsigned bytes, Barrier *b) {
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
                   address_in_shared(to)),
               "l"(__cvta_generic_to_global(from)), "r"(bytes), "r"(address_in_shared(b))
               : "memory");
}

__device__ inline void load_bytes(void *to, const void *from, unsigned bytes, Barrier *b, CachePolicy policy) {
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint [%0], [%1], %2, [%3], "
               "%4;" ::"r"(address_in_shared(to)),
               "l"(__cvta_generic_to_global(from)), "r"(bytes), "r"(address_in_shared(b)), "l"(policy.bits)
               : "memory");
}

__device__ inline void store_bytes(void *to, const void *from, unsigned bytes) {
  asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(__cvta_generic_to_global(to)),
               "r"(address_in_shared(from)), "r"(bytes)
               : "memory");
}

// to[i] += from[i] for so many bytes of float32.
__device__ inline void add_floats(float *to, const float *from, unsigned bytes) {
  asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f32 [%0], [%1], %2;" ::"l"(
                   __cvta_generic_to_global(to)),
               "r"(address_in_shared(from)), "r"(bytes)
               : "memory");
}

// --- groups of stores -----------------------------------------------------------------------------

// Every store and reduction asked for since the last call becomes one group of this thread.
__device__ inline void close_bulk_group() { asm volatile("cp.async.bulk.commit_group;" ::: "memory"); }

// Until all but this thread's LEFT youngest groups have been read: shared memory may be written again.
template <int LEFT>
__device__ inline void wait_until_read() {
  asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(LEFT) : "memory");
}

// Until all but this thread's LEFT youngest groups are in global memory.
template <int LEFT>
__device__ inline void wait_until_stored() {
  asm volatile("cp.async.bulk.wait_group %0;" ::"n"(LEFT) : "memory");
}
