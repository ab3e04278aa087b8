// The CPU's version of src/course_kernels/skinny_gemm_fp4/send.cuh: the same names, the same contract.
#pragma once
#include <hopper/mbarrier.cuh>

inline void send_16_bytes(void *to, float4 x, Barrier *b, unsigned rank) {
  hopper::send(to, &x, sizeof x, b, rank);
}
