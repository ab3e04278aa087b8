// Run a .cu file on the CPU, thread by thread: slow, exact, and enough to see wrong maths, masks and barriers.
//
// Every CUDA thread is a fiber, and the fibers of a warp run in the order of their numbers, each to its next barrier or
// shuffle. A barrier opens when all threads of the block (of the warp) that have not ended stand at one, and a warp runs
// as far as it can before the next one begins. So who passes a missing barrier runs ahead of its neighbours, every
// time. Blocks run one after the other, unless they wait for each other (stand_ins/whole_grid.cuh): then each runs up to
// that place, and goes on when all are there. Every byte of shared memory is SHARED_FILL when a block begins: 0x7f makes large numbers, 0xff makes NaN.
#include <ucontext.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline
#define __shared__ static
#define __launch_bounds__(...)
#define __align__(n) __attribute__((aligned(n)))
#ifndef SHARED_FILL
#define SHARED_FILL 0x7f
#endif
using std::max;
using std::min;

struct Place {
  unsigned x = 0, y = 0, z = 0;
};
struct alignas(16) uint4 {
  unsigned x, y, z, w;
};
struct alignas(8) float2 {
  float x, y;
};
struct alignas(16) float4 {
  float x, y, z, w;
};
inline float2 make_float2(float x, float y) { return {x, y}; }
inline float4 make_float4(float x, float y, float z, float w) { return {x, y, z, w}; }

inline Place gridDim, blockDim, blockIdx, threadIdx;

namespace fibers {
enum class Waits { no, at_block, at_warp, at_grid };
struct Copy {
  void *to;
  const void *from;
  int bytes, take;
};
struct Fiber {
  ucontext_t context;
  Place place;
  bool done = false;
  Waits waits = Waits::no;
  std::vector<std::vector<Copy>> groups;  // asynchronous copies that are on their way, the oldest first
  std::vector<Copy> open;                 // those of no group yet
};
inline std::vector<Fiber> all;
inline ucontext_t home;
inline unsigned current;
inline std::function<void()> body;
inline std::vector<float> handed;  // what each thread holds out to the others of its warp
inline std::vector<int> votes;     // what each thread says at a barrier that asks
inline std::vector<std::unique_ptr<char[]>> stacks;
constexpr std::size_t STACK = 1 << 16;
constexpr std::size_t MOST_SHARED = 227 * 1024;
alignas(128) inline char dynamic_shared[MOST_SHARED + 16];
inline std::size_t shared_bytes;  // of dynamic shared memory, asked for at the launch
inline std::string fault;         // the first thing that a card would not have put up with

// What a kernel declares as __shared__: cuda_on_cpu.py puts one of these behind each declaration.
inline std::vector<std::pair<void *, std::size_t>> declared;
struct Shared {
  Shared(void *memory, std::size_t bytes) {
    std::memset(memory, SHARED_FILL, bytes);
    declared.emplace_back(memory, bytes);
  }
};

inline void blame(const std::string &what) {
  if (fault.empty()) fault = what;
}

inline void wait(Waits where) {
  all[current].waits = where;
  swapcontext(&all[current].context, &home);
}

inline void run_one() {
  body();
  all[current].done = true;
  swapcontext(&all[current].context, &home);
}

// Lets the threads go on that wait for each other there, once all of them do; true if there are any.
inline bool open_barrier(Waits where, std::size_t first, std::size_t last) {
  bool opened = false;
  for (std::size_t t = first; t < last; t++) {
    if (!all[t].done && all[t].waits != where) return false;
    opened |= !all[t].done;
  }
  for (std::size_t t = first; t < last; t++) all[t].waits = Waits::no;
  return opened;
}

inline void begin_block() {
  const unsigned count = blockDim.x * blockDim.y * blockDim.z;
  for (auto [memory, bytes] : declared) std::memset(memory, SHARED_FILL, bytes);
  std::memset(dynamic_shared, SHARED_FILL, sizeof dynamic_shared);
  all = std::vector<Fiber>(count);
  while (stacks.size() < count) stacks.emplace_back(new char[STACK]);
  handed.assign(count, 0.0f);
  votes.assign(count, 0);
  for (unsigned t = 0; t < count; t++) {
    all[t].place = {t % blockDim.x, t / blockDim.x % blockDim.y, t / blockDim.x / blockDim.y};
    getcontext(&all[t].context);
    all[t].context.uc_stack.ss_sp = stacks[t].get();
    all[t].context.uc_stack.ss_size = STACK;
    makecontext(&all[t].context, run_one, 0);
  }
}

// Runs the block as far as it gets; true if it waits for the other blocks.
inline bool run_block() {
  const unsigned count = blockDim.x * blockDim.y * blockDim.z;
  do {
    for (unsigned first = 0, last; first < count; first = last) {
      last = min(first + 32, count);
      do {
        for (current = first; current < last; current++) {
          if (all[current].done || all[current].waits != Waits::no) continue;
          threadIdx = all[current].place;
          swapcontext(&home, &all[current].context);
        }
      } while (open_barrier(Waits::at_warp, first, last));
    }
  } while (open_barrier(Waits::at_block, 0, count));
  unsigned left = 0;
  for (const auto &fiber : all) {
    if (fiber.waits == Waits::at_grid) return true;
    left += !fiber.done;
  }
  if (left > 0) blame(std::to_string(left) + " threads wait at a barrier for others that never come");
  for (std::size_t i = shared_bytes; i < sizeof dynamic_shared; i++)
    if (static_cast<unsigned char>(dynamic_shared[i]) != SHARED_FILL) {
      blame("written past the dynamic shared memory asked for");
      break;
    }
  return false;
}

// A block that waits for the others, with all that is its own. Vectors are moved: no fiber changes its address.
struct Parked {
  Place place = blockIdx;
  std::vector<Fiber> fibers = std::move(all);
  std::vector<std::unique_ptr<char[]>> held = std::move(stacks);
  std::vector<std::vector<char>> shared;
  Parked() {
    stacks.clear();
    for (auto [memory, bytes] : declared)
      shared.emplace_back(static_cast<char *>(memory), static_cast<char *>(memory) + bytes);
    shared.emplace_back(dynamic_shared, dynamic_shared + sizeof dynamic_shared);
  }
  void back() {
    blockIdx = place;
    all = std::move(fibers);
    stacks = std::move(held);
    for (std::size_t i = 0; i < declared.size(); i++)
      std::memcpy(declared[i].first, shared[i].data(), declared[i].second);
    std::memcpy(dynamic_shared, shared.back().data(), sizeof dynamic_shared);
    for (auto &fiber : all)
      if (fiber.waits == Waits::at_grid) fiber.waits = Waits::no;
  }
};

template <class... P, std::size_t... I>
void launch(void (*kernel)(P...), void **arguments, std::index_sequence<I...>) {
  body = [=] { kernel(*static_cast<P *>(arguments[I])...); };
  std::vector<Parked> parked, again;
  for (blockIdx.z = 0; blockIdx.z < gridDim.z; blockIdx.z++)
    for (blockIdx.y = 0; blockIdx.y < gridDim.y; blockIdx.y++)
      for (blockIdx.x = 0; blockIdx.x < gridDim.x && fault.empty(); blockIdx.x++) {
        begin_block();
        if (run_block()) parked.emplace_back();
      }
  const std::size_t blocks = std::size_t(gridDim.x) * gridDim.y * gridDim.z;
  while (!parked.empty() && fault.empty()) {
    if (parked.size() < blocks) return blame("blocks wait for others that have ended");
    for (auto &block : parked) {
      block.back();
      if (run_block()) again.emplace_back();
    }
    parked = std::move(again);
    again.clear();
  }
}
template <class... P>
void launch(void (*kernel)(P...), void **arguments) {
  fault.clear();
  launch(kernel, arguments, std::index_sequence_for<P...>{});
}
}  // namespace fibers

inline void __syncthreads() { fibers::wait(fibers::Waits::at_block); }
inline void __syncwarp(unsigned = ~0u) { fibers::wait(fibers::Waits::at_warp); }

// A barrier at which every thread learns whether any of them said yes.
inline int __syncthreads_or(int mine) {
  fibers::votes[fibers::current] = mine;
  __syncthreads();
  int any = 0;
  for (const int vote : fibers::votes) any |= vote;
  __syncthreads();  // nobody votes again before all have counted
  return any;
}

inline float __shfl_xor_sync(unsigned, float x, int mask) {
  const unsigned me = fibers::current, partner = me ^ mask;
  fibers::handed[me] = x;
  __syncwarp();
  const float got = fibers::handed[partner];
  __syncwarp();  // nobody holds out the next number before all have taken this one
  return got;
}

inline float __shfl_down_sync(unsigned, float x, unsigned step) {
  const unsigned me = fibers::current, partner = me % 32 + step < 32 ? me + step : me;
  fibers::handed[me] = x;
  __syncwarp();
  const float got = fibers::handed[partner];
  __syncwarp();
  return got;
}

// Fibers change places at barriers and shuffles only, so nobody comes between.
inline float atomicAdd(float *to, float x) {
  const float before = *to;
  *to += x;
  return before;
}

// Asynchronous copies, for stand_ins/asynchronous_copy.cuh. What a copy will overwrite is NaN from the moment
// it is asked for, and the numbers come at the last moment the contract allows: when their thread has waited.
namespace fibers {
inline void copy(void *to, const void *from, int bytes, int take) {
  if (reinterpret_cast<std::size_t>(to) % bytes || reinterpret_cast<std::size_t>(from) % bytes)
    blame("an address of an asynchronous copy is no multiple of its " + std::to_string(bytes) + " bytes");
  std::memset(to, 0xff, bytes);
  all[current].open.push_back({to, from, bytes, take});
}
inline void close() {
  all[current].groups.push_back(std::move(all[current].open));
  all[current].open.clear();
}
inline void arrive_all_but(std::size_t youngest) {
  auto &groups = all[current].groups;
  while (groups.size() > youngest) {
    for (const Copy &copy : groups.front()) {
      std::memset(copy.to, 0, copy.bytes);
      std::memcpy(copy.to, copy.from, copy.take);
    }
    groups.erase(groups.begin());
  }
}
}  // namespace fibers
