// Reduction, kernel 2: a block adds up in shared memory, and sends one number.
//
// Contract  problem.py      Launcher  k02_tree.py
// Idea      256 numbers become 128 sums of two, then 64, 32 ... 1: eight steps, and the additions of a step all at
//           once
// Against   k01_atomics, where every element goes to the total by itself
// Cost      reads every element once; one addition to the total for THREADS elements; eight barriers in a block
// Next      k03_shuffle.cu, where most steps need neither shared memory nor a barrier
// Source    Harris, Optimizing Parallel Reduction in CUDA, NVIDIA 2007, reduction 3

constexpr int THREADS = 256;  // of one block; a power of two

// grid: ceil(N / THREADS)      block: THREADS threads
extern "C" __global__ void reduction_tree(const float *__restrict__ x,  // [N]
                                          float *y,                     // [1], zero before the first block
                                          long long N) {
  __shared__ float part[THREADS];
  const int t = threadIdx.x;
  const long long i = static_cast<long long>(blockIdx.x) * THREADS + t;
  part[t] = i < N ? x[i] : 0.0f;

  // The first half takes the second half in. Neighbouring threads touch neighbouring words: no bank conflicts.
  for (int half = THREADS / 2; half > 0; half /= 2) {
    __syncthreads();  // the numbers of the step before are complete
    if (t < half) part[t] += part[t + half];
  }

  if (t == 0) atomicAdd(y, part[0]);
}
