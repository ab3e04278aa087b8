// What codes stand for, worked out from their definitions, and the sum of a warp.
#pragma once

// Behind fp4_instructions.cuh.

// E2M1: s e e m, an exponent bias of 1, and no leading one where the exponent is 0.
__device__ inline float e2m1_by_definition(unsigned code) {
  const unsigned exponent = code >> 1 & 3, mantissa = code & 1;
  float size = mantissa * 0.5f;
  if (exponent > 0) size = (1.0f + size) * (1 << exponent) * 0.5f;
  return code & 8 ? -size : size;
}

// E4M3: s e e e e m m m, and all ones is NaN. In the places of a float32 it is 2**-120 of itself, subnormal or not.
__device__ inline float e4m3(unsigned code) {
  const float size = __uint_as_float((code & 127) << 20) * 0x1p120f;
  const float number = (code & 127) == 127 ? __uint_as_float(0x7fffffffu) : size;
  return code & 128 ? -number : number;
}

// Two of them at once, the first in the low byte. Cards from compute capability 8.9 on have an instruction for it.
__device__ inline float2 e4m3_pair(unsigned codes) {
#if __CUDA_ARCH__ >= 890
  return floats_of(halves_of_e4m3(codes));
#else
  return make_float2(e4m3(codes & 255), e4m3(codes >> 8 & 255));
#endif
}

// The sum of x over the lanes of a warp, in each of them.
__device__ inline float warp_sum(float x) {
#pragma unroll
  for (int step = 16; step; step /= 2) x += __shfl_xor_sync(~0u, x, step);
  return x;
}
