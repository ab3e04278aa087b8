// Reduction, kernel 1: everyone adds to one number.
//
// Contract  problem.py      Launcher  k01_atomics.py
// Idea      a thread adds its element to the total in memory; atomicAdd reads, adds and writes in one step that
//           nobody can come between
// Cost      reads every element once; N additions to one address, which stand in line
// Limits    right up to N = 2**24 or so: one float32 total then no longer grows by less than a whole unit
// Next      k02_tree.cu, where a block adds up first
// Source    CUDA C++ Programming Guide, section on atomic functions

// grid: ceil(N / blockDim.x)
extern "C" __global__ void reduction_atomics(const float *__restrict__ x,  // [N]
                                             float *y,                     // [1], zero before the first block
                                             long long N) {
  const long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < N) atomicAdd(y, x[i]);
}
