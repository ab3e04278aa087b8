// The CPU's bf16 and fp16: bits, and the way to float and back.
#pragma once
#include <cstring>

struct __nv_bfloat16 {
  unsigned short bits;
  __nv_bfloat16() = default;
  explicit __nv_bfloat16(float x) {  // the nearest, and of two equally near the even one
    unsigned wide;
    std::memcpy(&wide, &x, 4);
    bits = (wide + 0x7fffu + (wide >> 16 & 1u)) >> 16;
  }
  operator float() const {
    const unsigned wide = bits << 16;
    float x;
    std::memcpy(&x, &wide, 4);
    return x;
  }
};

struct __half {
  unsigned short bits;
  __half() = default;
  explicit __half(float x) {
    const _Float16 y = x;
    std::memcpy(&bits, &y, 2);
  }
  operator float() const {
    _Float16 y;
    std::memcpy(&y, &bits, 2);
    return y;
  }
};
using half = __half;

// Of two halves: worked out in float, where it is exact or nearly so, and rounded to a half, as a card does it.
inline __half operator+(__half a, __half b) { return __half(static_cast<float>(a) + static_cast<float>(b)); }
inline __half operator-(__half a, __half b) { return __half(static_cast<float>(a) - static_cast<float>(b)); }
inline __half operator*(__half a, __half b) { return __half(static_cast<float>(a) * static_cast<float>(b)); }
