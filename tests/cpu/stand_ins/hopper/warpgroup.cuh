// The CPU's version of src/course_kernels/cuda/hopper/warpgroup.cuh: the same names, the same contract.
#pragma once
#include <hopper/products.cuh>

#include "matrix_instructions.cuh"

template <int REGISTERS>
void registers_up() {
  static_assert(REGISTERS % 8 == 0 && 24 <= REGISTERS && REGISTERS <= 256);
  hopper::registers(REGISTERS);
}
template <int REGISTERS>
void registers_down() {
  static_assert(REGISTERS % 8 == 0 && 24 <= REGISTERS && REGISTERS <= 256);
  hopper::registers(REGISTERS);
}
inline bool elect_one() { return fibers::current % 32 == 0; }
inline int same_in_warp(int x) { return static_cast<int>(__shfl_sync(~0u, x, 0)); }
inline void named_barrier_wait(int id, int threads) { hopper::named_barrier(id, threads, true); }
inline void named_barrier_arrive(int id, int threads) { hopper::named_barrier(id, threads, false); }
inline unsigned cluster_rank() { return fibers::rank; }
inline unsigned cluster_size() { return fibers::blocks_in_cluster; }
inline void cluster_arrive() { hopper::cluster_arrive(); }
inline void cluster_wait() { hopper::cluster_wait(); }
inline void let_next_grid_begin() {}
inline void wait_for_last_grid() {}

inline float power_of_2(float x) {
  const float y = std::exp2(x);
  return std::fpclassify(y) == FP_SUBNORMAL ? 0.0f : y;
}
template <class T = Bf16x16>
unsigned rounded_pair(float first, float second) {
  if (T::KIND == hopper::bf16) return Bf16::pair(first, second);
  return Fp16::pair(first, second);
}
template <class T = Bf16x16>
float unpacked(unsigned both, bool second) {
  const unsigned short bits = second ? both >> 16 : both;
  return T::KIND == hopper::bf16 ? __uint_as_float(unsigned(bits) << 16) : float(same_bits<_Float16>(bits));
}
template <class T = Bf16x16, int R>
void operand(unsigned (&a)[4], const float (&d)[R], int step) {
  for (int i = 0; i < 4; i++) a[i] = rounded_pair<T>(d[8 * step + 2 * i], d[8 * step + 2 * i + 1]);
}

inline void store_matrices(void *row, const unsigned (&held)[4], bool transposed = false) {
  static unsigned char *rows[1024];
  if (reinterpret_cast<std::size_t>(row) % 16) fibers::blame("an address of stmatrix is no multiple of 16 bytes");
  rows[fibers::current] = static_cast<unsigned char *>(row);
  __syncwarp();
  const int first = fibers::current / 32 * 32, r = fibers::current % 32 / 4, c = fibers::current % 4 * 2;
  for (int i = 0; i < 4; i++)
    for (int j = 0; j < 2; j++) {
      const unsigned short number = held[i] >> 16 * j;
      unsigned char *to = rows[first + i * 8 + (transposed ? c + j : r)] + (transposed ? r : c + j) * 2;
      std::memcpy(to, &number, 2);
    }
  __syncwarp();
}
inline void store_matrices_transposed(void *row, const unsigned (&held)[4]) { store_matrices(row, held, true); }
