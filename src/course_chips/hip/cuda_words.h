// CUDA's words for clang's HIP, as far as our plain kernels use them; AMD's own headers come with a whole ROCm.
//
// A wave has 64 threads on gfx9 and 32 on gfx12. Neighbours are asked by their number in the wave.
#pragma once

#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
#define __shared__ __attribute__((shared))
#define __align__(n) __attribute__((aligned(n)))
#define __launch_bounds__(threads, ...) __attribute__((amdgpu_flat_work_group_size(1, threads)))

struct Place {
  unsigned x, y, z;
};
#define threadIdx (Place{__builtin_amdgcn_workitem_id_x(), __builtin_amdgcn_workitem_id_y(), 0})
#define blockIdx (Place{__builtin_amdgcn_workgroup_id_x(), __builtin_amdgcn_workgroup_id_y(), 0})

struct alignas(16) float4 {
  float x, y, z, w;
};

__device__ inline void __syncthreads() {
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
  __builtin_amdgcn_s_barrier();
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
}

__device__ inline float __shfl_xor_sync(unsigned, float x, int by) {
  const int lane = __builtin_amdgcn_mbcnt_hi(~0u, __builtin_amdgcn_mbcnt_lo(~0u, 0));
  return __builtin_bit_cast(float, __builtin_amdgcn_ds_bpermute((lane ^ by) * 4, __builtin_bit_cast(int, x)));
}

__device__ inline float fmaxf(float a, float b) { return __builtin_fmaxf(a, b); }
__device__ inline float expf(float x) { return __builtin_expf(x); }
__device__ inline int min(int a, int b) { return b < a ? b : a; }
