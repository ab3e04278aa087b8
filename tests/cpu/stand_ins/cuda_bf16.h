// The CPU's bf16 and fp16: bits, and the way to float and back.
#pragma once
#include <cstring>

struct __nv_bfloat16 {
  unsigned short bits;
};
struct __half {
  unsigned short bits;
};
using half = __half;

inline float __bfloat162float(__nv_bfloat16 x) {
  const unsigned bits = x.bits << 16;
  float y;
  std::memcpy(&y, &bits, 4);
  return y;
}
inline float __half2float(__half x) {
  _Float16 y;
  std::memcpy(&y, &x, 2);
  return y;
}
inline __nv_bfloat16 __float2bfloat16(float x) {
  unsigned bits;
  std::memcpy(&bits, &x, 4);
  return {static_cast<unsigned short>((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16)};
}
inline __half __float2half(float x) {
  const _Float16 y = x;
  __half z;
  std::memcpy(&z, &y, 2);
  return z;
}
inline float to_float(__nv_bfloat16 x) { return __bfloat162float(x); }
inline float to_float(__half x) { return __half2float(x); }
