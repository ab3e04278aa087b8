// Run a .cu file on the CPU, thread by thread: slow, exact, and enough to see wrong maths, masks and barriers.
//
// Every CUDA thread is a fiber. A round lets each fiber of a block run, in the order of its number, to its next
// barrier or shuffle. So a thread that passes a missing barrier runs ahead of its neighbours, every time.
#include <ucontext.h>

#include <cmath>
#include <functional>
#include <tuple>
#include <utility>
#include <vector>

#define __global__
#define __device__
#define __shared__ static
#define __launch_bounds__(...)
using std::max;
using std::min;

struct Place {
  unsigned x = 0, y = 0, z = 0;
};
struct alignas(16) uint4 {
  unsigned x, y, z, w;
};
struct alignas(16) float4 {
  float x, y, z, w;
};

inline Place gridDim, blockDim, blockIdx, threadIdx;

namespace fibers {
struct Fiber {
  ucontext_t context;
  std::vector<char> stack = std::vector<char>(1 << 16);
  Place place;
  bool done = false;
};
inline std::vector<Fiber> all;
inline ucontext_t home;
inline unsigned current;
inline std::function<void()> body;
inline std::vector<float> handed;  // what each thread holds out to the others of its warp

inline void pause() { swapcontext(&all[current].context, &home); }

inline void run_one() {
  body();
  all[current].done = true;
  swapcontext(&all[current].context, &home);
}

inline void run_block() {
  const unsigned count = blockDim.x * blockDim.y * blockDim.z;
  all = std::vector<Fiber>(count);
  handed.assign(count, 0.0f);
  for (unsigned t = 0; t < count; t++) {
    all[t].place = {t % blockDim.x, t / blockDim.x % blockDim.y, t / blockDim.x / blockDim.y};
    getcontext(&all[t].context);
    all[t].context.uc_stack.ss_sp = all[t].stack.data();
    all[t].context.uc_stack.ss_size = all[t].stack.size();
    makecontext(&all[t].context, run_one, 0);
  }
  for (unsigned left = count; left > 0;) {
    left = 0;
    for (current = 0; current < count; current++) {
      if (all[current].done) continue;
      threadIdx = all[current].place;
      swapcontext(&home, &all[current].context);
      left += !all[current].done;
    }
  }
}

template <class... P, std::size_t... I>
void launch(void (*kernel)(P...), void **arguments, std::index_sequence<I...>) {
  body = [=] { kernel(*static_cast<P *>(arguments[I])...); };
  for (blockIdx.z = 0; blockIdx.z < gridDim.z; blockIdx.z++)
    for (blockIdx.y = 0; blockIdx.y < gridDim.y; blockIdx.y++)
      for (blockIdx.x = 0; blockIdx.x < gridDim.x; blockIdx.x++) run_block();
}
template <class... P>
void launch(void (*kernel)(P...), void **arguments) {
  launch(kernel, arguments, std::index_sequence_for<P...>{});
}
}  // namespace fibers

inline void __syncthreads() { fibers::pause(); }

inline float __shfl_xor_sync(unsigned, float x, int mask) {
  const unsigned me = fibers::current, partner = me ^ mask;
  fibers::handed[me] = x;
  fibers::pause();
  const float got = fibers::handed[partner];
  fibers::pause();  // nobody holds out the next number before all have taken this one
  return got;
}

inline float __shfl_down_sync(unsigned, float x, unsigned step) {
  const unsigned me = fibers::current, partner = me % 32 + step < 32 ? me + step : me;
  fibers::handed[me] = x;
  fibers::pause();
  const float got = fibers::handed[partner];
  fibers::pause();
  return got;
}

// Fibers change places at barriers and shuffles only, so nobody comes between.
inline float atomicAdd(float *to, float x) {
  const float before = *to;
  *to += x;
  return before;
}
