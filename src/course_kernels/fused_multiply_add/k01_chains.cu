// Fused multiply-add, kernel 1: C chains in every thread.
//
// Contract  problem.py      Launcher  k01_chains.py
// Idea      a step of a chain must wait for the step before it, but not for its neighbours: with C chains a thread
//           always has C instructions that could go next
// Cost      one FFMA for every step of every chain, and a loop around 256 of them
// Limits    the 1 stands in the instruction itself, so an FFMA reads two registers and not three: the registers of a
//           scheduler likely lie in two banks, as on Volta, and three from the same bank would take a cycle more.
//           A single chain in each thread stays a little below eight, even with all the warps that fit, which should
//           be enough to hide the wait: why is not known
// Source    Volkov 2010, "Better performance at lower occupancy", GPU Technology Conference
//           Jia et al. 2018, "Dissecting the NVIDIA Volta GPU architecture via microbenchmarking", for the banks

constexpr int UNROLLED = 256;  // FFMAs in one turn of the loop: counting and jumping back are lost beside them

// grid: ceil(N / blockDim.x)      block: any
template <int C>
__device__ void run_chains(const float *x,  // [C, N]
                           const float *a,  // [N]
                           float *y,        // [C, N]
                           long long N, int K) {
  const long long n = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (n >= N) return;
  const float a_n = a[n];
  float held[C];
#pragma unroll
  for (int c = 0; c < C; c++) held[c] = x[c * N + n];

  // region chains
  constexpr int STEPS = UNROLLED / C;
  int k = 0;
  for (; k + STEPS <= K; k += STEPS) {
#pragma unroll
    for (int s = 0; s < STEPS; s++) {
#pragma unroll
      for (int c = 0; c < C; c++) held[c] = fmaf(held[c], a_n, 1.0f);
    }
  }
  // endregion
#pragma unroll 1
  for (; k < K; k++) {
#pragma unroll
    for (int c = 0; c < C; c++) held[c] = fmaf(held[c], a_n, 1.0f);
  }

#pragma unroll
  for (int c = 0; c < C; c++) y[c * N + n] = held[c];
}

extern "C" __global__ void chains_1(const float *x, const float *a, float *y, long long N, int K) {
  run_chains<1>(x, a, y, N, K);
}
extern "C" __global__ void chains_2(const float *x, const float *a, float *y, long long N, int K) {
  run_chains<2>(x, a, y, N, K);
}
extern "C" __global__ void chains_4(const float *x, const float *a, float *y, long long N, int K) {
  run_chains<4>(x, a, y, N, K);
}
extern "C" __global__ void chains_8(const float *x, const float *a, float *y, long long N, int K) {
  run_chains<8>(x, a, y, N, K);
}
