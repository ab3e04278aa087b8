// The CPU's version of src/course_kernels/cuda/pairs.cuh: the same names, the same contract.
#pragma once
#include "cuda_bf16.h"

namespace pairs {
template <class Number>
float one(unsigned pair, int which) {
  Number number;
  number.bits = pair >> 16 * which;
  return static_cast<float>(number);
}
template <class Number>
unsigned difference(unsigned pair, unsigned by) {
  unsigned both = 0;
  for (int which = 0; which < 2; which++) {
    const float exact = one<Number>(pair, which) - one<Number>(by, which);
    const Number number(exact);
    if (static_cast<float>(number) != exact) fibers::blame("a difference of two pairs that is not exact");
    both |= static_cast<unsigned>(number.bits) << 16 * which;
  }
  return both;
}
template <class Number>
unsigned product(unsigned pair, unsigned by) {
  unsigned both = 0;
  for (int which = 0; which < 2; which++) {
    const Number number(one<Number>(pair, which) * one<Number>(by, which));
    both |= static_cast<unsigned>(number.bits) << 16 * which;
  }
  return both;
}
}  // namespace pairs

inline unsigned bf16_difference(unsigned pair, unsigned by) { return pairs::difference<__nv_bfloat16>(pair, by); }
inline unsigned fp16_difference(unsigned pair, unsigned by) { return pairs::difference<__half>(pair, by); }
inline unsigned bf16_product(unsigned pair, unsigned by) { return pairs::product<__nv_bfloat16>(pair, by); }
inline unsigned fp16_product(unsigned pair, unsigned by) { return pairs::product<__half>(pair, by); }
inline float bf16_first(unsigned pair) { return pairs::one<__nv_bfloat16>(pair, 0); }
inline float bf16_second(unsigned pair) { return pairs::one<__nv_bfloat16>(pair, 1); }
inline float fp16_first(unsigned pair) { return pairs::one<__half>(pair, 0); }
inline float fp16_second(unsigned pair) { return pairs::one<__half>(pair, 1); }

inline void written_for_all() {}
inline float of_another_block(const float *from) { return *from; }
inline uint4 of_the_last_grid(const void *from) { return *static_cast<const uint4 *>(from); }
inline void wait_for_the_last_grid() {}
inline void let_the_next_grid_begin() {}
