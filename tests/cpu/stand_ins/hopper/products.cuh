// The CPU's version of src/course_kernels/cuda/hopper/products.cuh: the same names, the same contract.
#pragma once
#include <hopper/address.cuh>
#include <hopper/descriptor.cuh>

struct Bf16x16 {
  static constexpr hopper::Numbers KIND = hopper::bf16;
};
struct F16x16 {
  static constexpr hopper::Numbers KIND = hopper::f16;
};
struct E4m3x32 {
  static constexpr hopper::Numbers KIND = hopper::e4m3;
};
enum class Major { k, mn };

template <int... R>
void wgmma_fence(float (&...d)[R]) {
  hopper::fence();
}
inline void wgmma_commit() { hopper::commit(); }
template <int LEFT, int... R>
void wgmma_wait(float (&...d)[R]) {
  hopper::wait_for_products(LEFT);
}

template <int COLUMNS, class T = Bf16x16, Major B_MAJOR = Major::k, Major A_MAJOR = Major::k>
void products(float (&d)[COLUMNS / 2], Descriptor a, Descriptor b, bool add = true) {
  hopper::product(d, {T::KIND, COLUMNS, false, A_MAJOR == Major::mn, B_MAJOR == Major::mn, add, a, b}, nullptr);
}
template <int COLUMNS, class T = Bf16x16, Major B_MAJOR = Major::k>
void products(float (&d)[COLUMNS / 2], const unsigned (&a)[4], Descriptor b, bool add = true) {
  hopper::product(d, {T::KIND, COLUMNS, true, false, B_MAJOR == Major::mn, add, 0, b}, a);
}
