// A tile of a tensor to L2 and no further, by the copy engine: for what is asked for later.
//
// Contract  a hint, which nobody waits for. Coordinates as for `load_tile` of hopper/tma.cuh; the map says the box
// Limits    compute capability 9.0 and above
// Source    PTX ISA, cp.async.bulk.prefetch.tensor
#pragma once

#include <hopper/tma.cuh>

__device__ inline void tile_to_l2(const TensorMap &map, int x, int y) {
  asm volatile("cp.async.bulk.prefetch.tensor.2d.L2.global [%0, {%1, %2}];" ::"l"(&map), "r"(x), "r"(y) : "memory");
}
