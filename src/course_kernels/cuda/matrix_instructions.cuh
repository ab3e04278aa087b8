// What the 32 threads of a warp do as one: fetch small matrices from shared memory, and multiply them on a tensor core.
//
// Contract  all 32 lanes call together; matrices of 16-bit numbers, sums in fp32
// Limits    compute capability 8.0 and above
// Source    PTX ISA, ldmatrix and mma.m16n8k16
#pragma once

__device__ inline unsigned address_for_ldmatrix(const void *p) {
  return static_cast<unsigned>(__cvta_generic_to_shared(p));
}

// Four 8 x 8 matrices from shared memory. Lane l names 16 bytes, row l % 8 of matrix l / 8. Afterwards it holds of
// matrix i, in held[i], the numbers 2 * (l % 4) and the next of row l / 4.
__device__ inline void load_matrices(unsigned (&held)[4], const void *row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(held[0]), "=r"(held[1]), "=r"(held[2]), "=r"(held[3])
               : "r"(address_for_ldmatrix(row))
               : "memory");
}

// The same, and each matrix is transposed on its way.
__device__ inline void load_matrices_transposed(unsigned (&held)[4], const void *row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(held[0]), "=r"(held[1]), "=r"(held[2]), "=r"(held[3])
               : "r"(address_for_ldmatrix(row))
               : "memory");
}

// multiply: d += a * b with a 16 x 16, b 16 x 8, d 16 x 8. With r = l / 4 and c = 2 * (l % 4), lane l holds pairs of
// numbers, of a: (r, c), (r + 8, c), (r, c + 8), (r + 8, c + 8), each with its right neighbour;
// of b: (c, r) and (c + 8, r), each with the one below; of d: (r, c) and (r + 8, c), each with its right neighbour.
// pair: two sums rounded to 16 bits, the first in the lower half.
struct Bf16 {
  __device__ static void multiply(float (&d)[4], const unsigned (&a)[4], const unsigned *b) {
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
        "{%0, %1, %2, %3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
  }
  __device__ static unsigned pair(float first, float second) {
    unsigned both;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(second), "f"(first));
    return both;
  }
};

struct Fp16 {
  __device__ static void multiply(float (&d)[4], const unsigned (&a)[4], const unsigned *b) {
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
        "{%0, %1, %2, %3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
  }
  __device__ static unsigned pair(float first, float second) {
    unsigned both;
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(second), "f"(first));
    return both;
  }
};
