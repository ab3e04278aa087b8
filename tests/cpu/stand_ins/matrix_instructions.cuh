// The CPU's version of src/course_kernels/cuda/matrix_instructions.cuh: the same names, the same contract.
// Which lane and which register holds which number: PTX ISA, ldmatrix, and the fragments of mma.m16n8k16.
#pragma once
#include "cuda_bf16.h"

namespace warps {
inline const unsigned char *rows[1024];  // what each thread holds out to the others of its warp
inline unsigned pairs[1024][6];
inline int first() { return fibers::current / 32 * 32; }
inline int lane() { return fibers::current % 32; }

// The numbers p and q of the row that thread `lane` of the warp has named, side by side.
inline unsigned two(int lane_p, int p, int lane_q, int q) {
  unsigned short both[2];
  std::memcpy(&both[0], rows[first() + lane_p] + p * 2, 2);
  std::memcpy(&both[1], rows[first() + lane_q] + q * 2, 2);
  return both[0] | both[1] << 16;
}

template <class Number>
void multiply(float (&d)[4], const unsigned (&a)[4], const unsigned *b) {
  std::memcpy(pairs[fibers::current], a, 16);
  std::memcpy(pairs[fibers::current] + 4, b, 8);
  __syncwarp();
  for (int i = 0; i < 4; i++) {
    const int row = lane() / 4 + i / 2 * 8, column = lane() % 4 * 2 + i % 2;
    for (int k = 0; k < 16; k++) {
      const unsigned of_a = pairs[first() + row % 8 * 4 + k % 8 / 2][row / 8 + k / 8 * 2];
      const unsigned of_b = pairs[first() + column * 4 + k % 8 / 2][4 + k / 8];
      Number x, y;
      x.bits = of_a >> k % 2 * 16, y.bits = of_b >> k % 2 * 16;
      d[i] += static_cast<float>(x) * static_cast<float>(y);
    }
  }
  __syncwarp();
}
}  // namespace warps

inline void load_matrices(unsigned (&held)[4], const void *row) {
  using namespace warps;
  if (reinterpret_cast<std::size_t>(row) % 16) fibers::blame("an address of ldmatrix is no multiple of 16 bytes");
  rows[fibers::current] = static_cast<const unsigned char *>(row);
  __syncwarp();
  const int r = lane() / 4, c = lane() % 4 * 2;
  for (int i = 0; i < 4; i++) held[i] = two(i * 8 + r, c, i * 8 + r, c + 1);
  __syncwarp();
}

inline void load_matrices_transposed(unsigned (&held)[4], const void *row) {
  using namespace warps;
  rows[fibers::current] = static_cast<const unsigned char *>(row);
  __syncwarp();
  const int r = lane() / 4, c = lane() % 4 * 2;
  for (int i = 0; i < 4; i++) held[i] = two(i * 8 + c, r, i * 8 + c + 1, r);
  __syncwarp();
}

struct Bf16 {
  static void multiply(float (&d)[4], const unsigned (&a)[4], const unsigned *b) {
    warps::multiply<__nv_bfloat16>(d, a, b);
  }
  static unsigned pair(float first, float second) {
    return __nv_bfloat16(first).bits | __nv_bfloat16(second).bits << 16;
  }
};
struct Fp16 {
  static void multiply(float (&d)[4], const unsigned (&a)[4], const unsigned *b) { warps::multiply<__half>(d, a, b); }
  static unsigned pair(float first, float second) { return __half(first).bits | __half(second).bits << 16; }
};
