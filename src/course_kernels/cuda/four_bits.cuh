// From eight 4-bit weights of a word to the four registers of a multiply on tensor cores.
//
// Contract  a weight is stored as q + 8, q from -8 to 7; register i gets the two at bits 4i and 16 + 4i, exactly
// Idea      put a nibble into the last bits of a number so large that its steps are 1: with 0x4300, a bfloat16, it is
//           128 + (q + 8); with 0x6400, a float16, 1024 + (q + 8). Taking 128 + 8 away leaves q
// Cost      for eight weights three shifts, four masks (each with its `or` in one LOP3) and four subtractions (HFMA2)
// Source    Kim et al. 2022, arXiv:2211.10017
#pragma once

// Behind matrix_instructions.cuh and pairs.cuh.
struct Bf16Weights {
  using Number = Bf16;
  static constexpr unsigned BASE = 0x43004300u;  // 128, twice
  __device__ static unsigned less(unsigned pair, unsigned by) { return bf16_difference(pair, by); }
  __device__ static unsigned times(unsigned pair, unsigned by) { return bf16_product(pair, by); }
  __device__ static float first(unsigned pair) { return bf16_first(pair); }
  __device__ static float second(unsigned pair) { return bf16_second(pair); }
};

struct Fp16Weights {
  using Number = Fp16;
  static constexpr unsigned BASE = 0x64006400u;  // 1024, twice
  __device__ static unsigned less(unsigned pair, unsigned by) { return fp16_difference(pair, by); }
  __device__ static unsigned times(unsigned pair, unsigned by) { return fp16_product(pair, by); }
  __device__ static float first(unsigned pair) { return fp16_first(pair); }
  __device__ static float second(unsigned pair) { return fp16_second(pair); }
};

constexpr unsigned NIBBLES = 0x000f000fu;  // the lowest of each half

// `mask`: NIBBLES, kept in a register, for a LOP3 has room for one constant only.
template <class Weights>
__device__ inline void unpack(unsigned (&registers)[4], unsigned word, unsigned mask) {
#pragma unroll
  for (int i = 0; i < 4; i++) {
    registers[i] = Weights::less((word >> 4 * i & mask) | Weights::BASE, Weights::BASE | 0x00080008u);
  }
}
