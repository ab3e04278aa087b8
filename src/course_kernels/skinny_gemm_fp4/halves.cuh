// Two bfloat16 numbers times one half of a register.
//
// Idea      an HMUL2 takes half of an operand for both of its products, so a number need not be there twice; C++ has no
//           word for it, but where PTX makes a register of the same half twice, ptxas leaves that out
// Source    PTX ISA, mov and fma
#pragma once

// Both numbers of the pair times the first, or the second, of `by`; each product rounded once.
__device__ inline unsigned bf16_times_first(unsigned pair, unsigned by) {
  unsigned product;
  asm("{.reg .b16 first, second; .reg .b32 twice; mov.b32 {first, second}, %2; mov.b32 twice, {first, first};\n"
      "fma.rn.bf16x2 %0, %1, twice, %3;}"
      : "=r"(product)
      : "r"(pair), "r"(by), "r"(0x80008000u));  // -0 adds nothing
  return product;
}

__device__ inline unsigned bf16_times_second(unsigned pair, unsigned by) {
  unsigned product;
  asm("{.reg .b16 first, second; .reg .b32 twice; mov.b32 {first, second}, %2; mov.b32 twice, {second, second};\n"
      "fma.rn.bf16x2 %0, %1, twice, %3;}"
      : "=r"(product)
      : "r"(pair), "r"(by), "r"(0x80008000u));
  return product;
}
