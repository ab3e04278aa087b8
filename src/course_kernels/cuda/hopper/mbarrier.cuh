// Barriers that lie in shared memory (mbarriers): some threads arrive, bytes arrive, and others wait for both.
//
// Contract  a phase ends when as many arrivals as `barrier_init` said have come and no announced byte is missing; then
//           the next one begins by itself. The phases are numbered from 0. wait(b, p) returns once the last phase of
//           parity p has ended, so on a new barrier wait(b, 1) returns at once, and wait(b, 0) waits for phase 0. What
//           the arriving threads wrote before, and what the copy engine brought, is there for those who waited
// Limits    compute capability 9.0 and above. Who waits must not fall two phases behind: parities repeat
// Source    PTX ISA, mbarrier
#pragma once

#include <hopper/address.cuh>

struct alignas(8) Barrier {
  unsigned long long state;  // nobody's to read
};

// One thread does this; then `fence_barrier_init`, and then a barrier that all who use it pass.
__device__ inline void barrier_init(Barrier *b, unsigned arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(address_in_shared(b)), "r"(arrivals) : "memory");
}

// The copy engine and the other blocks of the cluster see the barriers that this thread has initialised.
__device__ inline void fence_barrier_init() { asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); }

// The place may be used for something else afterwards.
__device__ inline void barrier_inval(Barrier *b) {
  asm volatile("mbarrier.inval.shared::cta.b64 [%0];" ::"r"(address_in_shared(b)) : "memory");
}

// What this thread wrote to shared memory with ordinary stores (stmatrix too) is there for the copy engine and for the
// tensor cores, which come by a road of their own (the async proxy). Each writer calls it, before a barrier.
__device__ inline void fence_async() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

__device__ inline void arrive(Barrier *b) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(address_in_shared(b)) : "memory");
}

// Announce bytes that the copy engine will bring in this phase; without an arrival. They may come before.
__device__ inline void expect_bytes(Barrier *b, unsigned bytes) {
  asm volatile("mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%0], %1;" ::"r"(address_in_shared(b)), "r"(bytes)
               : "memory");
}

__device__ inline void arrive_and_expect_bytes(Barrier *b, unsigned bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(address_in_shared(b)), "r"(bytes)
               : "memory");
}

// Arrive at the barrier that lies at the same place in another block of the cluster, or in this one.
__device__ inline void arrive_remote(Barrier *b, unsigned rank) {
  asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];" ::"r"(address_in_cluster(b, rank))
               : "memory");
}

// Whether the phase has ended. The hardware may wait a moment before it says no.
__device__ inline bool try_wait(Barrier *b, unsigned parity) {
  unsigned ended;
  asm volatile(
      "{\n.reg .pred p;\nmbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\nselp.u32 %0, 1, 0, p;\n}"
      : "=r"(ended)
      : "r"(address_in_shared(b)), "r"(parity)
      : "memory");
  return ended != 0;
}

__device__ inline void wait(Barrier *b, unsigned parity) {
  while (!try_wait(b, parity)) {
  }
}

// The same, where those who arrive are threads of other blocks and have written something that is then read here.
__device__ inline void wait_for_cluster(Barrier *b, unsigned parity) {
  unsigned ended = 0;
  while (!ended) {
    asm volatile(
        "{\n.reg .pred p;\nmbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [%1], %2;\n"
        "selp.u32 %0, 1, 0, p;\n}"
        : "=r"(ended)
        : "r"(address_in_shared(b)), "r"(parity)
        : "memory");
  }
}
