// Vector add, kernel 3: 16 bytes in every load, four of them under way in every thread.
//
// Contract  problem.py      Launcher  k03_vectorised.py
// Idea      a thread asks for two 16-byte vectors of x and two of y before it adds the first pair
// Against   k01_cuda, where a load fetches 4 bytes and a thread has 8 under way
// Cost      two reads, one addition, one write for every element
// Source    Luitjens, Increase Performance with Vectorized Memory Access, NVIDIA Technical Blog 2013

constexpr int VECTORS = 2;  // of x and of y each: 64 bytes under way in a thread

// grid: ceil(N / 4 / (VECTORS * blockDim.x)), at least 1      block: at least 3 threads
extern "C" __global__ void vector_add_vectorised(const float *__restrict__ x,  // [N]; all three begin at
                                                 const float *__restrict__ y,  // [N]  multiples of 16 bytes
                                                 float *__restrict__ z,        // [N]
                                                 long long N) {
  const long long n_vectors = N / 4;
  const long long first = static_cast<long long>(blockIdx.x) * VECTORS * blockDim.x + threadIdx.x;
  const float4 *x4 = reinterpret_cast<const float4 *>(x);
  const float4 *y4 = reinterpret_cast<const float4 *>(y);
  float4 *z4 = reinterpret_cast<float4 *>(z);

  // Neighbouring threads take neighbouring vectors; a thread's own two lie a block apart.
  float4 a[VECTORS] = {}, b[VECTORS] = {};
#pragma unroll
  for (int v = 0; v < VECTORS; v++) {
    const long long i = first + v * blockDim.x;
    if (i < n_vectors) a[v] = x4[i], b[v] = y4[i];
  }
#pragma unroll
  for (int v = 0; v < VECTORS; v++) {
    const long long i = first + v * blockDim.x;
    // Added even where it is not stored: a branch here would make the loads of the next vector wait.
    const float4 sum = {a[v].x + b[v].x, a[v].y + b[v].y, a[v].z + b[v].z, a[v].w + b[v].w};
    if (i < n_vectors) z4[i] = sum;
  }

  // Up to three elements do not fill a vector. The first block adds them one by one.
  const long long tail = n_vectors * 4 + threadIdx.x;
  if (blockIdx.x == 0 && tail < N) z[tail] = x[tail] + y[tail];
}
