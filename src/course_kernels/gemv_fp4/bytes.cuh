// Four numbers a register: E2M1 as bytes with a sign, twice each number, and their products summed in whole numbers.
//
// Idea      the codes of four numbers are four selectors of one PRMT. A selector's highest bit, here the sign, does not
//           choose: it asks for the sign of the byte chosen, 0 in this table. So one PRMT gives the numbers above zero
//           with zeros between, another, of the codes with their signs turned, the sizes of those below; no mask, no
//           merge. Each goes into a sum of its own, and their difference is the sum of the block
//           Both sums begin at the bits of 1.5 * 2**23, where a float has steps of 1: read as floats they are off by
//           the same number, and their difference is exact. Nothing has to be converted
// Cost      for eight numbers one LOP3, two shifts, four PRMT and four IDP.4A
// Source    PTX ISA, prmt and dp4a; llama.cpp, ggml/src/ggml-cuda/vecdotq.cuh, has codes choose bytes in this way
#pragma once

// Behind values.cuh.

constexpr unsigned LOW = 0x03020100u, HIGH = 0x0c080604u;  // twice 0, 0.5, 1, 1.5; twice 2, 3, 4, 6. PRMT has room for
                                                           // one constant: `low` is LOW, held in a register
constexpr unsigned SIGNS = 0x88888888u;
constexpr int START = 0x4b400000;  // the bits of 1.5 * 2**23

// The eight numbers of a word: four of its lower half, four of its upper.
struct Bytes {
  unsigned low, high;
};

// Those above zero, twice each; 0 for the others.
__device__ inline Bytes above_zero(unsigned word, unsigned low) {
  return {bytes_at(low, HIGH, word), bytes_at(low, HIGH, word >> 16)};
}

// -x in each byte, for bytes from 0 to 128: no byte borrows from the next.
__device__ inline unsigned negated(unsigned bytes) { return (0x80808080u - bytes) ^ 0x80808080u; }

// All eight, twice each. For b, which is decoded once.
__device__ inline Bytes with_signs(unsigned word) {
  const Bytes above = above_zero(word, LOW), below = above_zero(word ^ SIGNS, LOW);
  return {above.low | negated(below.low), above.high | negated(below.high)};
}

// Four times the sum of a block's sixteen products: two words of a, and b as `with_signs` makes it of two words.
__device__ inline float block_sum(unsigned first, unsigned second, uint4 b, unsigned low) {
  const Bytes first_above = above_zero(first, low), first_below = above_zero(first ^ SIGNS, low);
  const Bytes second_above = above_zero(second, low), second_below = above_zero(second ^ SIGNS, low);
  int above = dot_of_bytes(first_above.low, b.x, START), below = dot_of_bytes(first_below.low, b.x, START);
  above = dot_of_bytes(first_above.high, b.y, above), below = dot_of_bytes(first_below.high, b.y, below);
  above = dot_of_bytes(second_above.low, b.z, above), below = dot_of_bytes(second_below.low, b.z, below);
  above = dot_of_bytes(second_above.high, b.w, above), below = dot_of_bytes(second_below.high, b.w, below);
  return __int_as_float(above) - __int_as_float(below);
}
