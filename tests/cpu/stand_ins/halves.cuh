// The CPU's version of src/course_kernels/skinny_gemm_fp4/halves.cuh: the same names, the same contract.
#pragma once
#include "pairs.cuh"

inline unsigned bf16_times_first(unsigned pair, unsigned by) { return bf16_product(pair, (by & 0xffff) * 0x00010001u); }
inline unsigned bf16_times_second(unsigned pair, unsigned by) { return bf16_product(pair, (by >> 16) * 0x00010001u); }
