// What asynchronous_copy.cuh and wgmma.cuh do, on the CPU, from the tables of the PTX ISA. Include cuda_on_cpu.h first.
//
// An asynchronous machine may do what it was asked at once or at the last moment. LATE_COPIES and LATE_PRODUCTS say
// which; a kernel has to be right either way. The tensor cores see shared memory as it was at the last fence.
#include <cstdint>
#include <cstring>
#include <deque>
#include <vector>

namespace model {
constexpr unsigned SIZE = 228 * 1024;
alignas(1024) inline char written[SIZE], seen[SIZE];
struct Copy {
  char *to;
  const char *from;
  int take;
};
struct Product {
  float *d;
  uint64_t a, b;
};
struct Thread {
  std::deque<std::vector<Copy>> copies{{}};
  std::deque<std::vector<Product>> products{{}};
};
inline Thread threads[1024];
inline Thread &me() { return threads[fibers::current]; }

// The block's shared memory, not aligned; the first thread of a block finds it full of NaN.
inline char *begin() {
  if (fibers::current == 0) {
    memset(written, 0xff, SIZE);
    memset(seen, 0xff, SIZE);
    for (Thread &thread : threads) thread = Thread();
  }
  return written + 16;
}

inline void run(const Copy &c) {
  memset(c.to, 0, 16);
  memcpy(c.to, c.from, c.take);
}

inline float number(unsigned address) {
  address ^= (address >> 7 & 7) << 4;  // Swizzle<3, 4, 3>
  uint16_t bits;
  memcpy(&bits, seen + address, 2);
  const uint32_t wide = uint32_t(bits) << 16;
  float x;
  memcpy(&x, &wide, 4);
  return x;
}

struct Matrix {
  unsigned start, leading, stride;
  explicit Matrix(uint64_t d)
      : start((d & 0x3fff) << 4), leading((d >> 16 & 0x3fff) << 4), stride((d >> 32 & 0x3fff) << 4) {
    if (d >> 62 != 1 || (d >> 49 & 7) != 0) abort();  // 128-byte swizzle, base offset 0
  }
  // Canonical layouts in bytes, T = 8. K-major: ((8,m),(T,2k)):((8T,SBO),(1,T))
  float k_major(unsigned m, unsigned k) const { return number(start + m % 8 * 128 + m / 8 * stride + k * 2); }
  // MN-major: ((T,8,m),(8,k)):((1,T,LBO),(8T,SBO))
  float mn_major(unsigned n, unsigned k) const {
    return number(start + n % 64 * 2 + n / 64 * leading + k % 8 * 128 + k / 8 * stride);
  }
};

inline void run(const Product &p) {
  const Matrix a(p.a), b(p.b);
  const unsigned thread = fibers::current % 128, warp = thread / 32, lane = thread % 32;
  for (unsigned i = 0; i < 128; i++) {
    const unsigned row = warp * 16 + lane / 4 + i / 2 % 2 * 8, column = i / 4 * 8 + lane % 4 * 2 + i % 2;
    for (unsigned k = 0; k < 16; k++) p.d[i] += a.k_major(row, k) * b.mn_major(column, k);
  }
}

template <class T>
void settle(std::deque<std::vector<T>> &groups, unsigned left) {  // the last group is open
  while (groups.size() - 1 > left) {
    for (const T &t : groups.front()) run(t);
    groups.pop_front();
  }
}
}  // namespace model

inline unsigned shared_address(const void *p) { return static_cast<const char *>(p) - model::written; }

inline void copy_16_bytes(void *to, const void *from, int take = 16) {
  const model::Copy c{static_cast<char *>(to), static_cast<const char *>(from), take};
  if (LATE_COPIES) model::me().copies.back().push_back(c);
  else model::run(c);
}
inline void close_group() { model::me().copies.emplace_back(); }
template <int N>
void wait_for_all_but() {
  model::settle(model::me().copies, N);
}
inline void fence_for_tensor_cores() { memcpy(model::seen, model::written, model::SIZE); }
inline void wgmma_fence() {}
inline void wgmma_64x256x16(float (&d)[128], uint64_t a, uint64_t b) {
  const model::Product p{d, a, b};
  if (LATE_PRODUCTS) model::me().products.back().push_back(p);
  else model::run(p);
}
inline void wgmma_commit() { model::me().products.emplace_back(); }
template <int N>
void wgmma_wait(float (&)[128]) {
  model::settle(model::me().products, N);
}
inline unsigned pack(float low, float high) {
  auto bits = [](float x) {
    uint32_t b;
    memcpy(&b, &x, 4);
    return (b + 0x7fff + (b >> 16 & 1)) >> 16;
  };
  return bits(low) | bits(high) << 16;
}
