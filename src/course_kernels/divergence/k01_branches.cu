// Divergence, kernel 1: neighbouring lanes take different branches.
//
// Contract  problem.py      Launcher  k01_branches.py      The branches  branches.cuh
// Idea      thread n takes branch n % W, as a program does that asks its data what to do
// Cost      a warp runs every branch that any of its lanes wants, and the other lanes wait: W times the work
// Next      k02_sorted.cu, the same branches without the wait
// Source    CUDA C++ Programming Guide, section on SIMT architecture
#include "branches.cuh"

// grid: ceil(N / blockDim.x)      block: any
extern "C" __global__ void branches_by_lane(const float *x,  // [N]
                                            float *y,        // [N]
                                            long long N, int W) {
  const long long n = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (n >= N) return;
  y[n] = take_branch(static_cast<int>(n % W), x[n]);
}
