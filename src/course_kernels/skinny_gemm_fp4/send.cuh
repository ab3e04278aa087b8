// Numbers from registers to the shared memory of another block of the cluster, counted on an mbarrier there.
//
// Contract  16 bytes, to an address that is a multiple of 16; they come by themselves. They are there for whoever has
//           waited, with `wait_for_cluster`, for the phase in which they were announced. So nobody passes a fence, and
//           the block that sends may end before they have come; the one that gets them may not
// Limits    compute capability 9.0 and above. The barrier has been initialised: the cluster has met since
// Source    PTX ISA, st.async and mapa
#pragma once

#include <hopper/mbarrier.cuh>

// To where `to` lies in the block of that rank; counted on the barrier that lies there where `b` lies here.
__device__ inline void send_16_bytes(void *to, float4 x, Barrier *b, unsigned rank) {
  asm volatile("st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v4.f32 [%0], {%1, %2, %3, %4}, [%5];" ::"r"(
                   address_in_cluster(to, rank)),
               "f"(x.x), "f"(x.y), "f"(x.z), "f"(x.w), "r"(address_in_cluster(b, rank))
               : "memory");
}
