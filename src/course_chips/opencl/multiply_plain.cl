// Contract  C (M, N) = A (M, K) @ B (K, N), bfloat16, sums in float32, rounded once; any lengths
// Idea      a work item, OpenCL's thread, has one number of C
// Against   course_kernels/gemm/k01_cuda_cores.cu: the same loop in CUDA
// Limits    each number of A is read N times, and each of B M times
#include "bf16.h"

__kernel void multiply(__global const ushort* A, __global const ushort* B, __global ushort* C, int M, int N, int K) {
    long row = get_global_id(1), column = get_global_id(0);
    if (row >= M || column >= N) return;
    float sum = 0;
    for (long k = 0; k < K; ++k) sum = fma(to_float(A[row * K + k]), to_float(B[k * N + column]), sum);
    C[row * N + column] = to_bf16(sum);
}
