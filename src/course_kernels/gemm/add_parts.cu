// Matrix multiply, what kernels 13 and 14 do where blocks share a tile: add the parts.
//
// Contract  plans.py
// Idea      every block left its sums in float32; they are added in the same order in every call, and rounded once
// Against   atomic additions, whose order is another in every call
// Cost      reads 4 * splits bytes for each element of C, most often from L2
// Next      nothing
// Source    CUTLASS, Efficient GEMM: split-K

#include "hopper/warpgroup.cuh"
#include "hopper_tiles.cuh"

// grid: ceil(size / 1024)      block: 256
extern "C" __global__ __launch_bounds__(256) void add_parts(const float *partial,  // [splits, size]
                                                            Half *C,               // [size], a multiple of 8
                                                            long long size, int splits) {
  let_next_grid_begin();
  wait_for_last_grid();  // where it was let begin early; else both say nothing
  const long long i = (static_cast<long long>(blockIdx.x) * 256 + threadIdx.x) * 4;
  if (i >= size) return;
  float4 sum = *reinterpret_cast<const float4 *>(partial + i);
  for (int s = 1; s < splits; s++) {
    const float4 x = *reinterpret_cast<const float4 *>(partial + s * size + i);
    sum = make_float4(sum.x + x.x, sum.y + x.y, sum.z + x.z, sum.w + x.w);
  }
  unsigned *to = reinterpret_cast<unsigned *>(C + i);
  to[0] = rounded_pair<Type>(sum.x, sum.y);
  to[1] = rounded_pair<Type>(sum.z, sum.w);
}
