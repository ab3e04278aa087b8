// Device printf: let the threads speak.
//
// Contract  cases.py, device_printf
// Idea      every thread can print; a whole grid is a crowd, so an if lets few speak
// Source    CUDA C++ Programming Guide, section on formatted output

extern "C" __global__ void device_printf(const float *x, int N) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < N - 2 || i > N + 1) return;  // only around the end of the list
  if (i < N)
    printf("block %d, thread %d: i = %d, x[i] = %g\n", blockIdx.x, threadIdx.x, i, x[i]);
  else
    printf("block %d, thread %d: i = %d, past the end\n", blockIdx.x, threadIdx.x, i);
}
