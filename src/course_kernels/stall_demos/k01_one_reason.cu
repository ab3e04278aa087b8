// Detours, kernel 1: fourteen copies, each by way of something that warps wait for.
//
// Contract  problem.py      Launcher  k01_one_reason.py
// Idea      a stall reason is named by what stands between a warp and its next instruction; a loop of nothing but that
//           makes it the largest
// Limits    what a loop does not need is kept small and is not gone: other reasons show beside the one
// Source    Nsight Compute, Kernel Profiling Guide, on warp stall reasons

constexpr int ROUNDS = 512;
constexpr int WARP = 32;

// Nobody knows beforehand that it is 0: what is added stays in the machine code.
__device__ inline float nothing(float v) { return v > 1e30f ? 1.0f : 0.0f; }

// region long_scoreboard
// The next address is known when the load is back: a walk through x, a line of memory further each time.
extern "C" __global__ void __launch_bounds__(128) long_scoreboard_detours(const float *x, float *y, int N) {
  const int n = blockIdx.x * blockDim.x + threadIdx.x;
  if (n >= N) return;
  int at = n;
  for (int r = 0; r < ROUNDS; r++) {
    at += WARP + static_cast<int>(nothing(__ldcg(x + at)));  // past L1, which would be near
    if (at >= N) at -= N;
    if (at >= N) at = n;  // fewer than a line
  }
  y[n] = x[n] + nothing(x[at]);
}
// endregion

// region short_scoreboard
// The same walk in shared memory.
extern "C" __global__ void __launch_bounds__(128) short_scoreboard_detours(const float *x, float *y, int N) {
  __shared__ int next[128];
  const int n = blockIdx.x * blockDim.x + threadIdx.x;
  next[threadIdx.x] = (threadIdx.x + 1) % 128;
  __syncthreads();
  int at = threadIdx.x;
  for (int r = 0; r < ROUNDS; r++) at = next[at];
  if (n < N) y[n] = at < 0 ? 0.0f : x[n];
}
// endregion

// region barrier
// One warp has something to do before each barrier, the others wait for it.
extern "C" __global__ void __launch_bounds__(1024) barrier_detours(const float *x, float *y, int N) {
  const int n = blockIdx.x * blockDim.x + threadIdx.x;
  const float mine = n < N ? x[n] : 0.0f;
  float v = mine;
  for (int r = 0; r < ROUNDS / 8; r++) {
    if (threadIdx.x < WARP)
      for (int i = 0; i < 64; i++) v = v * 0.5f + 1.0f;
    __syncthreads();
  }
  if (n < N) y[n] = mine + nothing(v);
}
// endregion

// region mio_throttle
// Stores to shared memory, one after the other, from every warp: their queue is full.
extern "C" __global__ void __launch_bounds__(1024) mio_throttle_detours(const float *x, float *y, int N) {
  __shared__ float tile[1024];
  const int n = blockIdx.x * blockDim.x + threadIdx.x;
  const float mine = n < N ? x[n] : 0.0f;
  volatile float *own = tile + threadIdx.x;
#pragma unroll 16
  for (int r = 0; r < ROUNDS; r++) *own = mine;
  if (n < N) y[n] = *own;
}
// endregion

// region lg_throttle
// Stores to global memory, each lane in a sector of its own, nobody waits for them to arrive: the queue is full.
extern "C" __global__ void __launch_bounds__(1024) lg_throttle_detours(const float *x, float *y, int N) {
  const int n = blockIdx.x * blockDim.x + threadIdx.x;
  if (n >= N) return;
  const float mine = x[n];
  volatile float *own = y + n;
#pragma unroll 16
  for (int r = 0; r < ROUNDS; r++) *own = mine;
}
// endregion

// region math_pipe_throttle
// Eight chains in fp64, whose pipe takes more than a tick for each warp.
extern "C" __global__ void __launch_bounds__(1024) math_pipe_throttle_detours(const float *x, float *y, int N) {
  const int n = blockIdx.x * blockDim.x + threadIdx.x;
  if (n >= N) return;
  double v[8];
#pragma unroll
  for (int i = 0; i < 8; i++) v[i] = x[n] + i;
  for (int r = 0; r < ROUNDS; r++)
#pragma unroll
    for (int i = 0; i < 8; i++) v[i] = v[i] * 0.5 + 1.0;
  double sum = 0.0;
#pragma unroll
  for (int i = 0; i < 8; i++) sum += v[i];
  y[n] = x[n] + nothing(static_cast<float>(sum));
}
// endregion

// region wait
// One chain: each step waits a fixed few ticks for the one before.
__device__ inline float one_chain(float v) {
#pragma unroll 64
  for (int r = 0; r < ROUNDS; r++) v = v * 0.5f + 1.0f;
  return v;
}

extern "C" __global__ void __launch_bounds__(128) wait_detours(const float *x, float *y, int N) {
  const int n = blockIdx.x * blockDim.x + threadIdx.x;
  if (n < N) y[n] = x[n] + nothing(one_chain(x[n]));
}
// endregion

// region not_selected
// The same chain. Eight warps for each scheduler: most of them could go on, and one may.
extern "C" __global__ void __launch_bounds__(1024) not_selected_detours(const float *x, float *y, int N) {
  const int n = blockIdx.x * blockDim.x + threadIdx.x;
  if (n < N) y[n] = x[n] + nothing(one_chain(x[n]));
}
// endregion

// region branch_resolving
// A jump to an address that is known at the last moment.
extern "C" __global__ void __launch_bounds__(128) branch_resolving_detours(const float *x, float *y, int N) {
  const int n = blockIdx.x * blockDim.x + threadIdx.x;
  if (n >= N) return;
  int state = N;
#pragma unroll 1
  for (int r = 0; r < ROUNDS; r++) {
    switch (state & 7) {  // the same way for all lanes, and told by no one beforehand
      case 0: asm volatile("add.s32 %0, %0, 1;" : "+r"(state)); break;
      case 1: asm volatile("add.s32 %0, %0, 3;" : "+r"(state)); break;
      case 2: asm volatile("xor.b32 %0, %0, 5;" : "+r"(state)); break;
      case 3: asm volatile("sub.s32 %0, %0, 2;" : "+r"(state)); break;
      case 4: asm volatile("add.s32 %0, %0, 7;" : "+r"(state)); break;
      case 5: asm volatile("xor.b32 %0, %0, 2;" : "+r"(state)); break;
      case 6: asm volatile("sub.s32 %0, %0, 5;" : "+r"(state)); break;
      default: asm volatile("add.s32 %0, %0, 6;" : "+r"(state)); break;
    }
  }
  y[n] = state == 0x7fffffff ? 0.0f : x[n];
}
// endregion

// region membar
// After each store: wait until all others could see it.
extern "C" __global__ void __launch_bounds__(128) membar_detours(const float *x, float *y, int N) {
  const int n = blockIdx.x * blockDim.x + threadIdx.x;
  if (n >= N) return;
  volatile float *own = y + n;
#pragma unroll 1
  for (int r = 0; r < ROUNDS / 8; r++) {
    *own = x[n];
    __threadfence();
  }
}
// endregion

// region imc_miss
// Numbers that stand in constant memory, each in a line of its own: its cache is small.
constexpr int LINE = 16, LINES = 1024;  // floats of 64 bytes; 64 KB, all that there is
__constant__ float zeros[LINE * LINES];

extern "C" __global__ void __launch_bounds__(128) imc_miss_detours(const float *x, float *y, int N) {
  const int n = blockIdx.x * blockDim.x + threadIdx.x;
  if (n >= N) return;
  float v = x[n];
#pragma unroll 1
  for (int r = 0; r < 8; r++)
#pragma unroll
    for (int i = 0; i < LINES; i++) v += zeros[i * LINE];
  y[n] = v;
}
// endregion

// region no_instruction
// Code without a loop, longer than the caches that hold instructions near by, and walked twice.
extern "C" __global__ void __launch_bounds__(128) no_instruction_detours(const float *x, float *y, int N) {
  const int n = blockIdx.x * blockDim.x + threadIdx.x;
  if (n >= N) return;
  float a = x[n], b = x[n], c = x[n], d = x[n];  // four chains: the fixed few ticks are filled
#pragma unroll 1
  for (int r = 0; r < 2; r++)
#pragma unroll
    for (int i = 0; i < 1000; i++) {
      a = a * 0.5f + 1.0f;
      b = b * 0.5f + 1.0f;
      c = c * 0.5f + 1.0f;
      d = d * 0.5f + 1.0f;
    }
  y[n] = x[n] + nothing(a + b + c + d);
}
// endregion

// region sleeping
extern "C" __global__ void __launch_bounds__(128) sleeping_detours(const float *x, float *y, int N) {
  const int n = blockIdx.x * blockDim.x + threadIdx.x;
  for (int r = 0; r < 16; r++) __nanosleep(1000);
  if (n < N) y[n] = x[n];
}
// endregion

// region drain
// A thread's last acts are stores far apart, and it may not leave before they are on their way.
extern "C" __global__ void __launch_bounds__(256) drain_detours(const float *x, float *y, int N) {
  const int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
  const int first = blockIdx.x * blockDim.x;
  // The block's numbers, turned round: neighbours among the lanes lie eight apart.
  const int n = first + lane * (256 / WARP) + warp;
  if (n < N) y[n] = x[n];
}
// endregion
