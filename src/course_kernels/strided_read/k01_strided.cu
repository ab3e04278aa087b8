// Strided read, kernel 1: thread i reads what thread i is told to read, however far from its neighbour's.
//
// Contract  problem.py      Launcher  k01_strided.py
// Idea      the 32 addresses of a warp become as many sectors of 32 bytes as they touch: 4 at stride 1, 32 from
//           stride 8 on, for the same 128 bytes wanted
// Against   copy, where neighbours read neighbours
// Cost      reads min(S, 8) times the bytes it wants; the writes stay side by side
// Source    CUDA C++ Best Practices Guide, section on strided accesses

// grid: (ceil(N / S / blockDim.x), S)      block: any
extern "C" __global__ void read_strided(const float *x,  // [N / S, S]
                                        float *y,        // [S, N / S]
                                        long long N, int S) {
  const long long lap = N / S;  // elements of one walk over x
  const long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= lap) return;
  y[blockIdx.y * lap + i] = x[i * S + blockIdx.y];
}
