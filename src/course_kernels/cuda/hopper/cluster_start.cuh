// A cluster's first meeting: its barriers are there, and nothing else has been written yet.
//
// Contract  as `cluster_arrive` of warpgroup.cuh; of what was written before, the others see what `fence_barrier_init`
//           said, and no more. So nobody waits for memory
// Source    PTX ISA, barrier.cluster and fence.mbarrier_init
#pragma once

__device__ inline void cluster_arrive_relaxed() { asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory"); }
