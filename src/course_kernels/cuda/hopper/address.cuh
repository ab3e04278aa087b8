// Where something lies in shared memory, as the instructions want it: 32 bits that count from the block's first byte.
#pragma once

__device__ inline unsigned address_in_shared(const void *p) {
  return static_cast<unsigned>(__cvta_generic_to_shared(p));
}

// The same place in the shared memory of another block of the cluster, the one of that rank.
__device__ inline unsigned address_in_cluster(const void *p, unsigned rank) {
  unsigned there;
  asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(address_in_shared(p)), "r"(rank));
  return there;
}
