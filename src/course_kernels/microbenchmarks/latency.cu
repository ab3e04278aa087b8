// Latency: one thread, one load at a time, each load told by the one before it where to look.
//
// Contract  latency.py
// Idea      i = x[i] over a chain that is one cycle: nothing can be asked for before its place is known, so the
//           time of a lap over its hops is the time of one load
// Limits    a hop holds the load and the arithmetic that makes an address of its answer; the *_pointer kernels keep
//           addresses in the chain, and a hop is the load alone. The clock is read once for all the hops of a sample
// Source    Wong et al. 2010, "Demystifying GPU microarchitecture through microbenchmarking"; Mei & Chu 2017,
//           "Dissecting GPU memory hierarchy through microbenchmarking"

constexpr int UNROLL = 64;  // hops between two branches: their cost disappears behind the loads they wait for
constexpr int SHARED_WORDS = 4096;

// Loads are volatile assembly, so that the compiler neither drops nor moves one; the suffix picks the level.
struct Shared {
  unsigned x;  // address in shared memory
  __device__ unsigned operator()(unsigned i) const {
    unsigned next;
    asm volatile("ld.shared.u32 %0, [%1];" : "=r"(next) : "r"(x + 4 * i));
    return next;
  }
};
struct SharedPointer {
  __device__ unsigned operator()(unsigned p) const {
    unsigned next;
    asm volatile("ld.shared.u32 %0, [%1];" : "=r"(next) : "r"(p));
    return next;
  }
};
struct Plain {  // what x[i] compiles to: the machine's LDG.E, which may stay in L1
  const unsigned *x;
  __device__ unsigned operator()(unsigned i) const {
    unsigned next;
    asm volatile("ld.global.u32 %0, [%1];" : "=r"(next) : "l"(x + i));
    return next;
  }
};
struct AllLevels {  // ca: asks for L1 by name, and compiles to LDG.E.STRONG.SM
  const unsigned *x;
  __device__ unsigned operator()(unsigned i) const {
    unsigned next;
    asm volatile("ld.global.ca.u32 %0, [%1];" : "=r"(next) : "l"(x + i));
    return next;
  }
};
struct PastL1 {  // cg: never in L1
  const unsigned *x;
  __device__ unsigned operator()(unsigned i) const {
    unsigned next;
    asm volatile("ld.global.cg.u32 %0, [%1];" : "=r"(next) : "l"(x + i));
    return next;
  }
};
struct PlainPointer {
  __device__ unsigned long long operator()(unsigned long long p) const {
    unsigned long long next;
    asm volatile("ld.global.u64 %0, [%1];" : "=l"(next) : "l"(p));
    return next;
  }
};
struct AllLevelsPointer {
  __device__ unsigned long long operator()(unsigned long long p) const {
    unsigned long long next;
    asm volatile("ld.global.ca.u64 %0, [%1];" : "=l"(next) : "l"(p));
    return next;
  }
};
struct PastL1Pointer {
  __device__ unsigned long long operator()(unsigned long long p) const {
    unsigned long long next;
    asm volatile("ld.global.cg.u64 %0, [%1];" : "=l"(next) : "l"(p));
    return next;
  }
};

// The clock, once `place` has arrived. Instructions issue in order and a store needs what it stores, so the clock
// cannot be read while the load is still under way.
__device__ inline long long clock_after(unsigned place, volatile unsigned *sink) {
  *sink = place;
  long long now;
  asm volatile("mov.u64 %0, %%clock64;" : "=l"(now)::"memory");
  return now;
}

template <typename Load, typename Place>
__device__ void chase(Load load, Place at, long long warm, int hops, int samples,
                      long long *cycles,  // [samples]
                      Place *last) {
  __shared__ unsigned sink;
  for (long long h = 0; h < warm; h++) at = load(at);
  for (int s = 0; s < samples; s++) {
    const long long start = clock_after(static_cast<unsigned>(at), &sink);
#pragma unroll 1
    for (int h = 0; h < hops; h += UNROLL) {
#pragma unroll
      for (int u = 0; u < UNROLL; u++) at = load(at);
    }
    cycles[s] = clock_after(static_cast<unsigned>(at), &sink) - start;
  }
  *last = at;  // where the walk ended: the answer, and a reason to walk it
}

// All kernels: grid 1, block 1 thread; hops a multiple of UNROLL, or 0, which times the two readings of the clock.

extern "C" __global__ void chase_shared(const unsigned *x, unsigned first, long long warm, int hops, int samples,
                                        long long *cycles, unsigned *last, int words) {
  __shared__ unsigned held[SHARED_WORDS];
  for (int i = 0; i < words; i++) held[i] = x[i];
  const Shared load{static_cast<unsigned>(__cvta_generic_to_shared(held))};
  chase(load, first, warm, hops, samples, cycles, last);
}

extern "C" __global__ void chase_shared_pointer(const unsigned *x, unsigned first, long long warm, int hops,
                                                int samples, long long *cycles, unsigned *last, int words) {
  __shared__ unsigned held[SHARED_WORDS];
  const unsigned base = static_cast<unsigned>(__cvta_generic_to_shared(held));
  for (int i = 0; i < words; i++) held[i] = base + 4 * x[i];
  chase(SharedPointer{}, base + 4 * first, warm, hops, samples, cycles, last);
  *last = (*last - base) / 4;
}

extern "C" __global__ void chase_plain(const unsigned *x, unsigned first, long long warm, int hops, int samples,
                                       long long *cycles, unsigned *last) {
  chase(Plain{x}, first, warm, hops, samples, cycles, last);
}

extern "C" __global__ void chase_ca(const unsigned *x, unsigned first, long long warm, int hops, int samples,
                                    long long *cycles, unsigned *last) {
  chase(AllLevels{x}, first, warm, hops, samples, cycles, last);
}

extern "C" __global__ void chase_cg(const unsigned *x, unsigned first, long long warm, int hops, int samples,
                                    long long *cycles, unsigned *last) {
  chase(PastL1{x}, first, warm, hops, samples, cycles, last);
}

extern "C" __global__ void chase_plain_pointer(unsigned long long first, long long warm, int hops, int samples,
                                               long long *cycles, unsigned long long *last) {
  chase(PlainPointer{}, first, warm, hops, samples, cycles, last);
}

extern "C" __global__ void chase_ca_pointer(unsigned long long first, long long warm, int hops, int samples,
                                            long long *cycles, unsigned long long *last) {
  chase(AllLevelsPointer{}, first, warm, hops, samples, cycles, last);
}

extern "C" __global__ void chase_cg_pointer(unsigned long long first, long long warm, int hops, int samples,
                                            long long *cycles, unsigned long long *last) {
  chase(PastL1Pointer{}, first, warm, hops, samples, cycles, last);
}

// Every line by itself: its word names its own place, so all hops of a sample hit the same line of the L2 cache.
extern "C" __global__ void chase_lines(const unsigned *x, const unsigned *lines, int count, int hops,
                                       long long *cycles,  // [count]
                                       unsigned *last) {   // [count]
  for (int k = 0; k < count; k++) chase(PastL1{x}, lines[k], 1, hops, 1, cycles + k, last + k);
}
