// The CPU's version of src/course_kernels/blackwell/tcgen05.cuh: the same names, the same contract.
#pragma once
#include <descriptors.cuh>
#include <hopper/tma.cuh>

#include "blackwell_on_cpu.h"

template <int BLOCKS>
void tmem_allocate(unsigned *where, int columns) {
  blackwell::allocate(where, columns);
}
template <int BLOCKS>
void tmem_no_more() {
  blackwell::no_more();
}
template <int BLOCKS>
void tmem_give_back(unsigned tmem, int columns) {
  blackwell::give_back(tmem, columns);
}
inline void tcgen05_before_barrier() {}
inline void tcgen05_after_barrier() { blackwell::after_barrier(); }

template <int BLOCKS>
void multiply_f16(unsigned d, Descriptor a, Descriptor b, unsigned how, bool add) {
  blackwell::multiply({blackwell::f16, BLOCKS, d, a, b, how, 0, 0, add});
}
inline void multiply_nvfp4(unsigned d, Descriptor a, Descriptor b, unsigned how, unsigned scales_a, unsigned scales_b,
                           bool add) {
  blackwell::multiply({blackwell::nvfp4, 1, d, a, b, how, scales_a, scales_b, add});
}
inline void multiply_mxfp8(unsigned d, Descriptor a, Descriptor b, unsigned how, unsigned scales_a, unsigned scales_b,
                           bool add) {
  blackwell::multiply({blackwell::mxfp8, 1, d, a, b, how, scales_a, scales_b, add});
}
inline void copy_scales(unsigned tmem, Descriptor from) { blackwell::copy_scales(tmem, from); }
template <int BLOCKS>
void tcgen05_commit(Barrier *b) {
  blackwell::commit(BLOCKS, b);
}

inline void load_sums(float (&d)[32], unsigned tmem) { blackwell::load_sums(d, tmem); }
inline void wait_for_sums(float (&)[32]) { blackwell::wait_for_sums(); }
inline void load_tile_for_pair(void *to, const TensorMap &map, Barrier *b, int x, int y) {
  blackwell::load_for_pair(to, &map, b, x, y);
}
