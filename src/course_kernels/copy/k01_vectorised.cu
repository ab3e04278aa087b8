// Copy, kernel 1: 16 bytes at a time, four of them under way in every thread.
//
// Contract  problem.py      Launcher  k01_vectorised.py
// Idea      a thread asks for four 16-byte vectors before it waits for the first, so that enough bytes are
//           under way to keep the memory busy
// Against   one element a thread: a quarter of the bytes for every load instruction
// Cost      reads and writes every byte once
// Source    CUDA C++ Best Practices Guide, section on coalesced access to global memory

constexpr int VECTORS = 4;  // 64 bytes under way in a thread, 128 KB on a full multiprocessor

// grid: ceil(n_bytes / 16 / (VECTORS * blockDim.x)), at least 1      block: at least 16 threads
extern "C" __global__ void copy_vectorised(const uint4 *__restrict__ x,  // [n_bytes / 16]
                                           uint4 *__restrict__ y,        // [n_bytes / 16]
                                           long long n_bytes) {
  const long long n_vectors = n_bytes / 16;
  const long long first = static_cast<long long>(blockIdx.x) * VECTORS * blockDim.x + threadIdx.x;

  // Neighbouring threads take neighbouring vectors; a thread's own four lie a block apart.
  uint4 held[VECTORS];
#pragma unroll
  for (int v = 0; v < VECTORS; v++) {
    const long long i = first + v * blockDim.x;
    if (i < n_vectors) held[v] = x[i];
  }
#pragma unroll
  for (int v = 0; v < VECTORS; v++) {
    const long long i = first + v * blockDim.x;
    if (i < n_vectors) y[i] = held[v];
  }

  // Up to 15 bytes do not fill a vector. The first block carries them one by one.
  const long long tail = n_vectors * 16 + threadIdx.x;
  if (blockIdx.x == 0 && tail < n_bytes) {
    reinterpret_cast<unsigned char *>(y)[tail] = reinterpret_cast<const unsigned char *>(x)[tail];
  }
}
