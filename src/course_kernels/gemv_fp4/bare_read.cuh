// The bytes of a product as one row of 16-byte vectors: a, its scales, b and its scales, one behind the other.
//
// Contract  bare_read.py
// Idea      one walk over all four: whoever read them one after the other would wait for memory four times at an end
#pragma once

struct Vectors {
  const uint4 *a, *scales_a, *b, *scales_b;
  long long of_a, of_scales_a, of_b, of_scales_b;  // how many

  __device__ long long all() const { return of_a + of_scales_a + of_b + of_scales_b; }

  // The address of vector i, below all(); compilers make selects of this, no branches.
  __device__ const uint4 *at(long long i) const {
    const uint4 *place = a + i;
    i -= of_a;
    if (i >= 0) place = scales_a + i;
    i -= of_scales_a;
    if (i >= 0) place = b + i;
    i -= of_b;
    if (i >= 0) place = scales_b + i;
    return place;
  }
};

__device__ inline unsigned added(uint4 v) { return v.x + v.y + v.z + v.w; }

// Every thread of a warp calls this, with what it has added up: the warp's sum is written down.
__device__ inline void write_sum(unsigned sum, unsigned *sums) {
#pragma unroll
  for (int step = 16; step; step /= 2) {
    sum += __float_as_uint(__shfl_xor_sync(~0u, __uint_as_float(sum), step));  // bits travel as they are
  }
  if (threadIdx.x % 32 == 0) sums[(blockIdx.x * blockDim.x + threadIdx.x) / 32] = sum;
}
