// Contract  C (M, N) = A (M, K) @ B (K, N), bfloat16, sums in float32, rounded once; M a multiple of 8, N of 16, K of 16
// Idea      16 work items, a sub-group, hold a tile of 8 x 16 sums and ask together for its product with 16 along K
// Against   multiply_plain.cl, where each is alone
// Limits    Xe-HPC only; the built-in is the compiler's own name, declared here since no header has it
#include "bf16.h"

float8 __builtin_IB_sub_group16_fdpas_f_f_bf_bf_8_8(float8 sums, short8 a, int8 b);

// region kernel
__kernel __attribute__((intel_reqd_sub_group_size(16))) void multiply(
    __global const ushort* A, __global const ushort* B, __global ushort* C, int M, int N, int K) {
    int lane = get_sub_group_local_id();
    long row = get_global_id(1) * 8, column = get_global_id(0) / 16 * 16 + lane;
    float8 sums;
    for (int j = 0; j < 8; ++j) sums[j] = 0;
    for (long k = 0; k < K; k += 16) {
        short8 a;  // one column of A for each lane, 8 rows of it
        int8 b;    // one column of B for each lane, 16 rows of it in pairs
        for (int j = 0; j < 8; ++j) {
            a[j] = (short)A[(row + j) * K + k + lane];
            b[j] = (int)(B[(k + 2 * j) * N + column] | (uint)B[(k + 2 * j + 1) * N + column] << 16);
        }
        sums = __builtin_IB_sub_group16_fdpas_f_f_bf_bf_8_8(sums, a, b);
    }
    for (int j = 0; j < 8; ++j) C[(row + j) * N + column] = to_bf16(sums[j]);
}
// endregion
