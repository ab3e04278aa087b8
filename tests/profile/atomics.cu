// planted: atomics
//
// Every thread adds its own number to the one total.

// grid: ceil(N / 256)      block: 256 threads
extern "C" __global__ void sum(const float *x,  // [N]
                               float *y,        // [1], zero before the first block
                               long long N) {
  const long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < N) atomicAdd(y, x[i]);
}
