// Vector add in CUDA C++: one thread adds one pair.
//
// Contract  problem.py      Launcher  k01_cuda.py
// Idea      the loop is gone: every thread asks which pair is its own
// Cost      two reads, one addition, one write for every element
// Next      k02_triton.py, the same kernel in Triton
// Source    CUDA C++ Programming Guide, section on kernels

extern "C" __global__ void vector_add(const float *x, const float *y, float *z, long long N) {
  const long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= N) return;  // the last block reaches past the end
  z[i] = x[i] + y[i];
}
