// Coordinates: every thread writes down who it is and where it runs.
//
// Contract  coordinates.py
// Idea      the built-in variables say who; the special registers %laneid and %smid say where
// Cost      nine words a thread
// Source    PTX ISA, chapter on special registers

constexpr int WARP = 32;

__device__ inline int lane_id() {
  int lane;
  asm volatile("mov.u32 %0, %%laneid;" : "=r"(lane));
  return lane;
}
__device__ inline int multiprocessor_id() {
  int sm;
  asm volatile("mov.u32 %0, %%smid;" : "=r"(sm));
  return sm;
}

// grid, block: anything in one, two or three dimensions
extern "C" __global__ void coordinates(int *rows) {  // [threads of the grid, 9]
  const int block = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
  const int thread = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
  const int threads = blockDim.x * blockDim.y * blockDim.z;
  int *row = rows + (static_cast<long long>(block) * threads + thread) * 9;
  row[0] = blockIdx.x;
  row[1] = blockIdx.y;
  row[2] = blockIdx.z;
  row[3] = threadIdx.x;
  row[4] = threadIdx.y;
  row[5] = threadIdx.z;
  row[6] = thread / WARP;  // x runs fastest, then y, then z: 32 neighbours in that order are a warp
  row[7] = lane_id();
  row[8] = multiprocessor_id();
}
