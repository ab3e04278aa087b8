// Two 16-bit numbers in a register, and other single instructions that C++ has no word for.
#pragma once

// The difference of two pairs, by numbers whose difference is exact: one HFMA2.
__device__ inline unsigned bf16_difference(unsigned pair, unsigned by) {
  unsigned difference;
  asm("fma.rn.bf16x2 %0, %1, %2, %3;" : "=r"(difference) : "r"(pair), "r"(0x3f803f80u), "r"(by ^ 0x80008000u));
  return difference;
}

__device__ inline unsigned fp16_difference(unsigned pair, unsigned by) {
  unsigned difference;
  asm("sub.rn.f16x2 %0, %1, %2;" : "=r"(difference) : "r"(pair), "r"(by));
  return difference;
}

// The products of two pairs, each rounded once: one HFMA2.
__device__ inline unsigned bf16_product(unsigned pair, unsigned by) {
  unsigned product;
  asm("fma.rn.bf16x2 %0, %1, %2, %3;" : "=r"(product) : "r"(pair), "r"(by), "r"(0x80008000u));  // -0 adds nothing
  return product;
}

__device__ inline unsigned fp16_product(unsigned pair, unsigned by) {
  unsigned product;
  asm("mul.rn.f16x2 %0, %1, %2;" : "=r"(product) : "r"(pair), "r"(by));
  return product;
}

// Of a pair as float32.
__device__ inline float bf16_first(unsigned pair) { return __uint_as_float(pair << 16); }
__device__ inline float bf16_second(unsigned pair) { return __uint_as_float(pair & 0xffff0000u); }
__device__ inline float fp16_first(unsigned pair) {
  float first;
  asm("{.reg .f16 low, high; mov.b32 {low, high}, %1; cvt.f32.f16 %0, low;}" : "=f"(first) : "r"(pair));
  return first;
}
__device__ inline float fp16_second(unsigned pair) { return fp16_first(pair >> 16); }

// What this thread has written is seen by whoever sees a later write of it.
__device__ inline void written_for_all() { __threadfence(); }

// A number that another block wrote, from L2: L1 may hold an older one.
__device__ inline float of_another_block(const float *from) { return __ldcg(from); }

// 16 bytes that the last grid may have written. Never before `wait_for_the_last_grid`, where the compiler may put a
// load of memory that it takes for constant.
__device__ inline uint4 of_the_last_grid(const void *from) {
  uint4 x;
  asm volatile("ld.global.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(x.x), "=r"(x.y), "=r"(x.z), "=r"(x.w)
               : "l"(from)
               : "memory");
  return x;
}

// A grid that was started before the last one of its stream had ended waits here until it has; others pass.
__device__ inline void wait_for_the_last_grid() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

// From here on the next grid may begin, if it was started in that way, where blocks of this one have ended.
__device__ inline void let_the_next_grid_begin() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}
