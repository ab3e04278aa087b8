// Shared memory of another block of the cluster, read by ordinary loads.
//
// Contract  what is read was written before a barrier of the cluster that both have passed, and stays until the next one
// Limits    compute capability 9.0 and above
// Source    PTX ISA, ld.shared::cluster and mapa
#pragma once

#include <hopper/address.cuh>

// The float that lies in the block of that rank where `p` lies in this one.
__device__ inline float float_of_block(const float *p, unsigned rank) {
  float x;
  asm volatile("ld.shared::cluster.f32 %0, [%1];" : "=f"(x) : "r"(address_in_cluster(p, rank)) : "memory");
  return x;
}
