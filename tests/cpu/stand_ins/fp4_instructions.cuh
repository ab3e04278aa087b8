// The CPU's version of src/course_kernels/gemv_fp4/fp4_instructions.cuh: the same names, the same contract.
#pragma once
#include "cuda_fp16.h"

inline uint4 streamed(const void *from) { return *static_cast<const uint4 *>(from); }
inline unsigned streamed_pair(const void *from) { return *static_cast<const unsigned short *>(from); }
inline void stream(uint4 &x, const void *from, bool there) {
  if (there) x = streamed(from);
}
inline void stream_pair(unsigned &x, const void *from, bool there) {
  if (there) x = streamed_pair(from);
}

// PTX ISA, prmt: the lowest three bits of a selector choose a byte, the fourth asks for its sign, eight times.
inline unsigned bytes_at(unsigned low, unsigned high, unsigned which) {
  const unsigned long long all = static_cast<unsigned long long>(high) << 32 | low;
  unsigned found = 0;
  for (int i = 0; i < 4; i++) {
    const unsigned selector = which >> 4 * i & 15, byte = all >> 8 * (selector & 7) & 255;
    found |= (selector < 8 ? byte : byte < 128 ? 0u : 255u) << 8 * i;
  }
  return found;
}

inline int dot_of_bytes(unsigned a, unsigned b, int sum) {
  for (int i = 0; i < 4; i++) sum += static_cast<signed char>(a >> 8 * i) * static_cast<signed char>(b >> 8 * i);
  return sum;
}

namespace fp4 {
inline float half_at(unsigned pair, int i) {
  __half x;
  x.bits = pair >> 16 * i;
  return x;
}
}  // namespace fp4

// The product of two halves has 22 bits, so that its sum with a third is right in a double; then one rounding.
inline unsigned pairs_added(unsigned a, unsigned b, unsigned c) {
  unsigned sum = 0;
  for (int i = 0; i < 2; i++) {
    const double exact = static_cast<double>(fp4::half_at(a, i)) * fp4::half_at(b, i) + fp4::half_at(c, i);
    const _Float16 rounded = static_cast<_Float16>(exact);
    sum |= same_bits<unsigned short>(rounded) << 16 * i;
  }
  return sum;
}
inline unsigned pairs_multiplied(unsigned a, unsigned b) { return pairs_added(a, b, 0x80008000u); }
inline float2 floats_of(unsigned pair) { return {fp4::half_at(pair, 0), fp4::half_at(pair, 1)}; }
inline unsigned short half_of(float x) { return __half(x).bits; }
