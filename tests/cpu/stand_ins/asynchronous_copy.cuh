// The CPU's version of src/course_kernels/cuda/asynchronous_copy.cuh: the same names, the same contract.
#pragma once

inline void copy_16_bytes(void *to, const void *from, int take = 16) { fibers::copy(to, from, 16, take); }
inline void copy_4_bytes(void *to, const void *from, int take = 4) { fibers::copy(to, from, 4, take); }
inline void close_group() { fibers::close(); }

template <int N>
void wait_for_all_but() {
  fibers::arrive_all_but(N);
}
