// Wrong grid: the kernel is right, the launch is not.
//
// Contract  cases.py, too_many_threads and too_few_blocks
// Idea      y is twice x, started with a block that is too large, or with a block too few
// Finds it  the driver, for the block; poisoned outputs, for the missing block
// Source    CUDA C++ Programming Guide, section on the thread hierarchy

extern "C" __global__ void twice(const float *x, float *y, int N) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= N) return;
  y[i] = 2.0f * x[i];
}
