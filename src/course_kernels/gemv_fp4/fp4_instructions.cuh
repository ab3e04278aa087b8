// Single instructions that C++ has no word for. tests/cpu/stand_ins has the CPU's version: same names, same contract.
#pragma once

// 16 bytes that nobody else will want: past L1, without a place in it.
__device__ inline uint4 streamed(const void *from) {
  uint4 x;
  asm volatile("ld.global.nc.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(x.x), "=r"(x.y), "=r"(x.z), "=r"(x.w)
               : "l"(from));
  return x;
}
__device__ inline unsigned streamed_pair(const void *from) {  // two bytes
  unsigned x;
  asm volatile("ld.global.nc.L1::no_allocate.u16 %0, [%1];" : "=r"(x) : "l"(from));
  return x;
}
// The same where `there` says so; elsewhere x keeps what it has. Without a branch.
__device__ inline void stream(uint4 &x, const void *from, bool there) {
  asm volatile("{.reg .pred p; setp.ne.u32 p, %5, 0; @p ld.global.nc.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];}"
               : "+r"(x.x), "+r"(x.y), "+r"(x.z), "+r"(x.w)
               : "l"(from), "r"(static_cast<unsigned>(there)));
}
__device__ inline void stream_pair(unsigned &x, const void *from, bool there) {
  asm volatile("{.reg .pred p; setp.ne.u32 p, %2, 0; @p ld.global.nc.L1::no_allocate.u16 %0, [%1];}"
               : "+r"(x)
               : "l"(from), "r"(static_cast<unsigned>(there)));
}

// PRMT: byte i of the result is the byte of {low, high} that nibble i of the lower half of `which` numbers, 0 to 7. A
// nibble from 8 up gives the sign of that byte eight times: 0 for a byte below 128.
__device__ inline unsigned bytes_at(unsigned low, unsigned high, unsigned which) {
  unsigned found;
  asm("prmt.b32 %0, %1, %2, %3;" : "=r"(found) : "r"(low), "r"(high), "r"(which));
  return found;
}

// sum + the four products of bytes with signs.
__device__ inline int dot_of_bytes(unsigned a, unsigned b, int sum) {
  int more;
  asm("dp4a.s32.s32 %0, %1, %2, %3;" : "=r"(more) : "r"(a), "r"(b), "r"(sum));
  return more;
}

// Of two halves in a register, a * b + c, each rounded once; a * b; and both as float32.
__device__ inline unsigned pairs_added(unsigned a, unsigned b, unsigned c) {
  unsigned sum;
  asm("fma.rn.f16x2 %0, %1, %2, %3;" : "=r"(sum) : "r"(a), "r"(b), "r"(c));
  return sum;
}
__device__ inline unsigned pairs_multiplied(unsigned a, unsigned b) {
  unsigned product;
  asm("mul.rn.f16x2 %0, %1, %2;" : "=r"(product) : "r"(a), "r"(b));
  return product;
}
__device__ inline float2 floats_of(unsigned pair) {
  float2 both;
  asm("{.reg .f16 low, high; mov.b32 {low, high}, %2; cvt.f32.f16 %0, low; cvt.f32.f16 %1, high;}"
      : "=f"(both.x), "=f"(both.y)
      : "r"(pair));
  return both;
}

// Two E4M3 numbers as halves, exactly: F2FP.
#if __CUDA_ARCH__ >= 890
__device__ inline unsigned halves_of_e4m3(unsigned codes) {
  unsigned pair;
  asm("{.reg .b16 low, high; mov.b32 {low, high}, %1; cvt.rn.f16x2.e4m3x2 %0, low;}" : "=r"(pair) : "r"(codes));
  return pair;
}
#endif

// The nearest float16, as bits.
__device__ inline unsigned short half_of(float x) {
  unsigned short half;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(half) : "f"(x));
  return half;
}
