// From codes of four bits (E2M1) to float16: by Blackwell's conversion, and in software.
//
// Contract  decode.py, which is the launcher too
// Idea      in software: three bits of a code, put where a float16 has the end of its exponent and the beginning of its
//           fraction, are its value times 2^-14, also below 1. One multiply mends that; the sign moves by itself
// Cost      half a byte read, two bytes written for each number. For two numbers one instruction in hardware; four
//           shifts, their masks and a multiply in software
// Limits    IN_HARDWARE=1 needs compute capability 10.0 or 10.3, and there it is COMPILED, NOT RUN: no such card was here
// Source    PTX ISA, cvt with .e2m1x2; OCP Microscaling Formats, E2M1

#ifndef IN_HARDWARE
#define IN_HARDWARE 0
#endif

constexpr int THREADS = 256;

// Two codes of a byte, the first in the lower half, as two float16 numbers.
#if IN_HARDWARE
__device__ inline unsigned two_numbers(unsigned byte) {
  unsigned both;
  asm("{\n.reg .b8 codes, rest<3>;\nmov.b32 {codes, rest0, rest1, rest2}, %1;\ncvt.rn.f16x2.e2m1x2 %0, codes;\n}"
      : "=r"(both)
      : "r"(byte));
  return both;
}
#else
constexpr unsigned TO_THE_14 = 0x74007400u;  // 2^14, twice

__device__ inline unsigned two_numbers(unsigned byte) {
  const unsigned signs = (byte << 12 & 0x8000u) | (byte << 24 & 0x80000000u);
  const unsigned rest = (byte << 9 & 0x0e00u) | (byte << 21 & 0x0e000000u);
  unsigned both;
  asm("mul.rn.f16x2 %0, %1, %2;" : "=r"(both) : "r"(signs | rest), "r"(TO_THE_14));
  return both;
}
#endif

// grid: enough blocks for a thread a vector of 4 bytes      block: THREADS
extern "C" __global__ __launch_bounds__(THREADS) void decode(const unsigned *codes,  // [words], eight codes each
                                                             uint4 *numbers,         // [words], eight float16 each
                                                             long long words) {
  const long long i = static_cast<long long>(blockIdx.x) * THREADS + threadIdx.x;
  if (i >= words) return;
  const unsigned word = codes[i];
  uint4 eight;
  eight.x = two_numbers(word & 0xff);
  eight.y = two_numbers(word >> 8 & 0xff);
  eight.z = two_numbers(word >> 16 & 0xff);
  eight.w = two_numbers(word >> 24);
  numbers[i] = eight;
}
