// Add and norm, kernel 1: a thread takes a row.
//
// Contract  problem.py      Launcher  k01_thread_a_row.py
// Idea      rows have nothing to do with each other, so each thread takes one: it walks along it for the mean,
//           again for the spread, and once more to write
// Against   nothing; this is the formula as it stands
// Cost      less than one operation a byte, and no thread ever waits for another one
// Next      k02_warp_a_row.cu
// Source    Ba, Kiros and Hinton, Layer Normalization, 2016

constexpr int THREADS = 64;  // and rows, of one block: 8192 rows reach nearly every multiprocessor

// grid: ceil(M / THREADS)      block: THREADS threads
extern "C" __global__ void __launch_bounds__(THREADS)
    add_norm_thread_a_row(const float *__restrict__ x,  // [M, N]
                          const float *__restrict__ r,  // [M, N]
                          const float *__restrict__ g,  // [N]
                          float *__restrict__ y,        // [M, N]
                          int M, int N, float epsilon) {
  const int m = blockIdx.x * THREADS + threadIdx.x;
  if (m >= M) return;
  const long long row = static_cast<long long>(m) * N;

  float sum = 0.0f;
  for (int n = 0; n < N; n++) sum += x[row + n] + r[row + n];
  const float mean = sum / N;
  float squared = 0.0f;
  for (int n = 0; n < N; n++) {
    const float off = x[row + n] + r[row + n] - mean;
    squared += off * off;
  }
  const float scale = 1.0f / sqrtf(squared / N + epsilon);
  for (int n = 0; n < N; n++) y[row + n] = g[n] * (x[row + n] + r[row + n] - mean) * scale;
}
