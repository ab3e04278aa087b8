// Contract  O = softmax(Q K^T / sqrt(D)) V, each (N, D), bfloat16, scores and sums in float32; D is a macro
// Idea      a work item has one row of Q, with a running maximum m, a running sum l and a running answer
// Against   course_kernels/attention/k02_teaching.cu: tiles of keys in shared memory there, none here
// Limits    2 D numbers of a row are meant for registers, more than most chips give
// Source    Dao 2023, arXiv:2307.08691, algorithm 1
#include "bf16.h"

__kernel void attention(__global const ushort* Q, __global const ushort* K, __global const ushort* V,
                        __global ushort* O, int N, float scale) {  // scale: log2(e) / sqrt(D)
    long row = get_global_id(0);
    if (row >= N) return;
    float q[D], answer[D];
    for (int d = 0; d < D; ++d) {
        q[d] = to_float(Q[row * D + d]) * scale;
        answer[d] = 0;
    }
    float m = -INFINITY, l = 0;
    for (long n = 0; n < N; ++n) {
        float s = 0;
        for (int d = 0; d < D; ++d) s = fma(q[d], to_float(K[n * D + d]), s);
        float m_new = fmax(m, s), p = exp2(s - m_new), repair = exp2(m - m_new);
        l = l * repair + p;
        for (int d = 0; d < D; ++d) answer[d] = fma(p, to_float(V[n * D + d]), answer[d] * repair);
        m = m_new;
    }
    for (int d = 0; d < D; ++d) O[row * D + d] = to_bf16(answer[d] / l);
}
