// planted: bytes in flight
//
// A copy by a handful of warps, each of which waits for four bytes a lane before it asks for the next.

// grid: any number of blocks      block: any
extern "C" __global__ void copy(const float *x,  // [N]
                                float *y,        // [N]
                                long long N) {
  const long long step = static_cast<long long>(gridDim.x) * blockDim.x;
#pragma unroll 1
  for (long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x; i < N; i += step) y[i] = x[i];
}
