// A wave of 64 threads multiplies 16 x K by K x 16: v_mfma, and which thread holds which number.
//
// K is 16 on gfx942 and 32 on gfx950. Thread l holds row l % 16 of A, column l % 16 of B, and of both the K / 4 numbers
// from l / 16 * (K / 4) on; of the sums it holds column l % 16 and four rows from l / 16 * 4 on.
//
// Source    A. Salykov et al. 2025, Introduction to Matrix Core Programming on AMD CDNA3 and CDNA4 architecture
#pragma once

#if defined(__gfx950__)
constexpr int K_STEP = 32;
#else
constexpr int K_STEP = 16;
#endif

constexpr int WAVE = 64;
constexpr int HELD = K_STEP / 4;  // numbers of A, and of B, that a thread holds: neighbours along K

typedef __bf16 Held __attribute__((ext_vector_type(HELD)));
typedef float Sums __attribute__((ext_vector_type(4)));

__device__ inline Sums multiply(Held a, Held b, Sums sums) {
#if defined(__gfx950__)
  return __builtin_amdgcn_mfma_f32_16x16x32_bf16(a, b, sums, 0, 0, 0);
#else
  typedef short Bits __attribute__((ext_vector_type(4)));
  return __builtin_amdgcn_mfma_f32_16x16x16bf16_1k(__builtin_bit_cast(Bits, a), __builtin_bit_cast(Bits, b), sums, 0, 0,
                                                   0);
#endif
}
