// What Blackwell's matrix instruction is told in numbers: where its operands are, which types and sizes they have.
//
// Contract  of an operand with a swizzle, `in_shared(k_major(address))` and `in_shared(mn_major(address, panel_bytes))`:
//           the functions of hopper/descriptor.cuh, and `advance`, hold here too. Scales are without a swizzle:
//           `scales_in_shared(address)`. Types and sizes: `f16_instruction`, `nvfp4_instruction`, `mxfp8_instruction`
// Limits    nothing here is an instruction, so the CPU's tests use this very file. Matrices that begin where the
//           swizzle's pattern begins; dense ones; no sign is turned
// Source    PTX ISA, tcgen05: Shared memory descriptor, Canonical layouts, Instruction descriptor
#pragma once

#include <hopper/descriptor.cuh>

// --- where an operand is --------------------------------------------------------------------------

// Address, steps and swizzle have Hopper's places: its codes 1, 2, 3 in bits 62-63 are 2, 4, 6 in bits 61-63 here. What
// is new is a constant 1 in bits 46-48.
__device__ constexpr Descriptor in_shared(Descriptor of_hopper) { return of_hopper | 1ull << 46; }

constexpr unsigned SCALES_BYTES = 512;  // 32 rows of 16 bytes, see `scales_in_shared`

// Four scales each of 128 rows of A, or of 128 columns of B: 512 bytes. Row r has its four, one behind the other along
// k, at 16 * (r % 32) + 4 * (r / 32). The copy to tensor memory takes 32 rows of 16 bytes, eight of them 128 bytes.
__device__ constexpr Descriptor scales_in_shared(unsigned address) {
  return in_shared(static_cast<Descriptor>((address & 0x3ffff) >> 4) | static_cast<Descriptor>(128 >> 4) << 32);
}

// --- types and sizes ------------------------------------------------------------------------------

// Bits 17-22 N / 8, bits 24-28 M / 16.
__device__ constexpr unsigned instruction_sizes(int M, int N) {
  return static_cast<unsigned>(N >> 3) << 17 | static_cast<unsigned>(M >> 4) << 24;
}

// kind::f16, sums in float32: bits 4-5 the sums' type, 1 for float32; 7-9 and 10-12 the types of A and B, 0 for float16,
// 1 for bfloat16; 15 and 16 are set where A or B lies by rows of k (MN-major, `mn_major`).
template <int M, int N>
__device__ constexpr unsigned f16_instruction(bool bfloat16, bool a_by_k, bool b_by_k) {
  static_assert(M == 128 || M == 256, "128 rows in a block, or in each of a pair");
  static_assert(N % (M / 8) == 0 && N <= 256, "columns in sixteens, and so in each block of a pair");
  return 1u << 4 | (bfloat16 ? 1u << 7 | 1u << 10 : 0u) | (a_by_k ? 1u << 15 : 0u) | (b_by_k ? 1u << 16 : 0u) |
         instruction_sizes(M, N);
}

// kind::mxf4nvf4: bits 7-9 and 10-11 the types of A and B, 1 for E2M1; 23 the scales' type, 0 for E4M3. 4-5 and 29-30
// would say at which byte of a word the scales begin: with four of them in a word, at 0. Bit 31: 0 for 64 of k.
template <int M, int N>
__device__ constexpr unsigned nvfp4_instruction() {
  static_assert(M == 128 && N % 8 == 0 && 8 <= N && N <= 256, "128 rows, columns in eights");
  return 1u << 7 | 1u << 10 | instruction_sizes(M, N);
}

// kind::mxf8f6f4 with both operands in E4M3: bits 7-9 and 10-12 their types, 0 for it; 23 the scales' type, 1 for E8M0.
// One scale for 32 of k, and four of them in a word: 4-5 says which of B's this product takes, 29-30 which of A's.
template <int M, int N>
__device__ constexpr unsigned mxfp8_instruction(int which) {
  static_assert(M == 128 && N % 8 == 0 && 8 <= N && N <= 256, "128 rows, columns in eights");
  return 1u << 23 | static_cast<unsigned>(which) << 4 | static_cast<unsigned>(which) << 29 | instruction_sizes(M, N);
}
