// Run a .cu file on the CPU, thread by thread: slow, exact, and enough to see wrong maths, masks and barriers.
//
// Every CUDA thread is a fiber, and the fibers of a warp run in the order of their numbers, each to its next barrier or
// shuffle. A barrier opens when all threads of the block (of the warp) that have not ended stand at one, and a warp runs
// as far as it can before the next one begins. So who passes a missing barrier runs ahead of its neighbours, every
// time. Blocks run one after the other, unless they wait for each other (stand_ins/whole_grid.cuh): then each runs up to
// that place, and goes on when all are there. The blocks of a cluster take turns, each as far as it can; hopper_on_cpu.h
// says what else they wait for. Every byte of shared memory is SHARED_FILL when a block begins: 0x7f makes large numbers,
// 0xff makes NaN.
//
// What does not depend on the kernel is in cuda_on_cpu.cpp, which is compiled once: hundreds of kernels include this.
#include <cmath>
#include <cstring>
#include <utility>

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline
#define __shared__ static
#define __launch_bounds__(...)
#define __align__(n) __attribute__((aligned(n)))
#define __grid_constant__
#ifndef SHARED_FILL
#define SHARED_FILL 0x7f
#endif

template <class T>
constexpr T max(T a, T b) {
  return a < b ? b : a;
}
template <class T>
constexpr T min(T a, T b) {
  return b < a ? b : a;
}

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

extern Place gridDim, blockDim, blockIdx, threadIdx;

namespace fibers {
enum class Waits { no, at_block, at_warp, at_grid, for_event };
constexpr std::size_t MOST_SHARED = 227 * 1024;
extern unsigned current;                          // the thread that runs, by its number in the block
extern char dynamic_shared[MOST_SHARED + 1024];
extern std::size_t shared_base;                   // where in it the kernel's begins
extern std::size_t shared_bytes;                  // of dynamic shared memory, asked for at the launch
extern int fill;                                  // SHARED_FILL of this kernel

void blame(const char *what);                     // a card would not have put up with this; the first thing counts
const char *fault();                              // that thing, or nothing
void wait(Waits where);

// What a thread waits for that is no barrier of the whole block or warp; it lies on that thread's stack.
struct Event {
  virtual bool ready() = 0;
  virtual void says(char *text, std::size_t room) = 0;  // what it is, for the report of a deadlock
};
void wait_for(Event &event);

// Blocks of a cluster take turns, each as far as it gets. What other files keep for each of them hangs in here.
extern unsigned rank, blocks_in_cluster;
struct Hooks {
  void (*begin)();       // a block begins
  void (*comes_back)();  // a block goes on after another one of its cluster
  bool (*stuck)();       // nobody in the cluster can go on: do for this block what was put off, if there is anything
  void (*end)();         // all threads of the block have ended
};
extern Hooks hooks;
unsigned ended_in_cluster();  // threads

void run(void (*body)(void **), void **arguments);  // the whole grid

// What a kernel declares as __shared__: cuda_on_cpu.py puts one of these behind each declaration.
struct Shared {
  Shared(void *memory, std::size_t bytes);
};

// Asynchronous copies, for stand_ins/asynchronous_copy.cuh. What a copy will overwrite is NaN from the moment
// it is asked for, and the numbers come at the last moment the contract allows: when their thread has waited.
void copy(void *to, const void *from, int bytes, int take);
void close();
void arrive_all_but(std::size_t youngest);

template <class... P, std::size_t... I>
void call(void (*kernel)(P...), void **arguments, std::index_sequence<I...>) {
  kernel(*static_cast<P *>(arguments[I])...);
}
template <class... P>
void launch(void (*kernel)(P...), void **arguments) {
  static void (*chosen)(P...);
  chosen = kernel;
  run([](void **held) { call(chosen, held, std::index_sequence_for<P...>{}); }, arguments);
}
}  // namespace fibers

inline void __syncthreads() { fibers::wait(fibers::Waits::at_block); }
inline void __syncwarp(unsigned = ~0u) { fibers::wait(fibers::Waits::at_warp); }
int __syncthreads_or(int mine);  // a barrier at which every thread learns whether any of them said yes
float __shfl_xor_sync(unsigned, float x, int mask);
float __shfl_sync(unsigned, float x, int lane);
float __shfl_down_sync(unsigned, float x, unsigned step);
inline int __any_sync(unsigned mask, int mine) {
  float found = mine != 0;
  for (int step = 16; step; step /= 2) found += __shfl_xor_sync(mask, found, step);
  return found != 0;
}

// The bits of one type as another.
template <class To, class From>
To same_bits(From x) {
  To y;
  std::memcpy(&y, &x, sizeof y);
  return y;
}
inline float __int_as_float(int x) { return same_bits<float>(x); }
inline float __uint_as_float(unsigned x) { return same_bits<float>(x); }
inline int __float_as_int(float x) { return same_bits<int>(x); }
inline unsigned __float_as_uint(float x) { return same_bits<unsigned>(x); }

// Fibers change places at barriers and shuffles only, so nobody comes between.
template <class T>
T atomicAdd(T *to, T x) {
  const T before = *to;
  *to += x;
  return before;
}
inline unsigned atomicInc(unsigned *to, unsigned most) {
  const unsigned before = *to;
  *to = before >= most ? 0 : before + 1;
  return before;
}
inline void __threadfence() {}
template <class T>
T __ldcg(const T *from) {
  return *from;
}
template <class T>
T __ldg(const T *from) {
  return *from;
}
inline float rsqrtf(float x) { return 1 / std::sqrt(x); }
