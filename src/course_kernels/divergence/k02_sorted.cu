// Divergence, kernel 2: all lanes of a warp take the same branch.
//
// Contract  problem.py      Launcher  k02_sorted.py      The branches  branches.cuh
// Idea      W warps share 32*W elements: each warp takes those of one branch, so its lanes never part
// Against   k01_branches, where every warp runs every branch
// Cost      the same branches, the same arithmetic; a warp reads and writes every W-th element, and the elements
//           between belong to other warps of its block, so the cache can mend most of that
// Limits    up to W = 16 it takes as long as W = 1 on an H200, with W = 32 clearly longer. The size of the code is not
//           the reason: loops of half the length take as long. Left over are the number of branches itself and the
//           long strides; they have not been told apart
// Source    CUDA C++ Best Practices Guide, section on branching and divergence
#include "branches.cuh"

constexpr int WARP = 32;

// grid: ceil(N / blockDim.x)      block: a multiple of WARP * W threads
extern "C" __global__ void branches_by_warp(const float *x,  // [N]
                                            float *y,        // [N]
                                            long long N, int W) {
  const int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
  const int group = warp / W, branch = warp % W;
  const long long n =
      static_cast<long long>(blockIdx.x) * blockDim.x + (static_cast<long long>(group) * WARP + lane) * W + branch;
  if (n >= N) return;
  y[n] = take_branch(branch, x[n]);
}
