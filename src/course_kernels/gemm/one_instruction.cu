// A matrix multiply in one instruction: 16 x 16 by 16 x 8, by one warp.
//
// Contract  C[m, n] = sum over k of A[m, k] * B[k, n]; bfloat16 in, float32 out      Launcher  one_instruction.py
// Idea      mma.sync multiplies numbers that lie in the registers of the 32 threads; all that is left to do is to put
//           each number where the instruction looks for it
// Limits    compute capability 8.0 and above
// Source    PTX ISA, mma.m16n8k16, matrix fragments

using Half = unsigned short;  // 16 bits of a bfloat16

// Two neighbours in a register: the first in the lower half.
__device__ inline unsigned pair(Half first, Half second) { return first | static_cast<unsigned>(second) << 16; }

// region instruction
// c += A @ B. A thread hands in 8 numbers of A and 4 of B, two in a register, and holds 4 of C.
__device__ inline void mma_16x8x16(float (&c)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
               "{%0, %1, %2, %3};"
               : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
// endregion

// grid: 1      block: 32 threads
extern "C" __global__ void one_instruction(const Half *A,  // [16, 16]
                                           const Half *B,  // [16, 8]
                                           float *C) {     // [16, 8]
  // Eight groups of four threads: a group has two rows of A, a column of B, and the same two rows of C.
  const int group = threadIdx.x / 4, two = threadIdx.x % 4 * 2;

  unsigned a[4], b[2];
  for (int i = 0; i < 4; i++) {
    const int m = group + i % 2 * 8, k = two + i / 2 * 8;
    a[i] = pair(A[m * 16 + k], A[m * 16 + k + 1]);
  }
  for (int i = 0; i < 2; i++) {
    const int k = two + i * 8;
    b[i] = pair(B[k * 8 + group], B[(k + 1) * 8 + group]);
  }

  float c[4] = {};
  mma_16x8x16(c, a, b);

  for (int i = 0; i < 4; i++) C[(group + i / 2 * 8) * 8 + two + i % 2] = c[i];
}
