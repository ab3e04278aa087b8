// The CPU's version of src/course_kernels/cuda/hopper/tma.cuh: the same names, the same contract.
#pragma once
#include <hopper/mbarrier.cuh>

struct alignas(64) TensorMap {
  unsigned long long words[16];
};
struct CachePolicy {};

inline CachePolicy evict_first() { return {}; }
inline CachePolicy evict_last() { return {}; }
inline void prefetch(const TensorMap &) {}

template <class... At>
void load_tile_multicast(void *to, const TensorMap &map, Barrier *b, unsigned short blocks, At... x) {
  const int at[] = {int(x)...};
  hopper::load(to, &map, b, blocks, sizeof...(At), at);
}
template <class... At>
void load_tile_multicast(void *to, const TensorMap &map, Barrier *b, unsigned short blocks, CachePolicy, At... x) {
  load_tile_multicast(to, map, b, blocks, x...);
}
template <class... At>
void load_tile(void *to, const TensorMap &map, Barrier *b, At... x) {
  load_tile_multicast(to, map, b, 0, x...);
}
template <class... At>
void load_tile(void *to, const TensorMap &map, Barrier *b, CachePolicy, At... x) {
  load_tile_multicast(to, map, b, 0, x...);
}
template <class... At>
void store_tile(const TensorMap &map, const void *from, At... x) {
  const int at[] = {int(x)...};
  hopper::store(&map, from, false, sizeof...(At), at);
}
template <class... At>
void store_tile(const TensorMap &map, const void *from, CachePolicy, At... x) {
  store_tile(map, from, x...);
}
template <class... At>
void add_tile(const TensorMap &map, const void *from, At... x) {
  const int at[] = {int(x)...};
  hopper::store(&map, from, true, sizeof...(At), at);
}

inline void load_bytes(void *to, const void *from, unsigned bytes, Barrier *b, CachePolicy = {}) {
  hopper::load_bytes(to, from, bytes, b);
}
inline void store_bytes(void *to, const void *from, unsigned bytes) { hopper::store_bytes(to, from, bytes, false); }
inline void add_floats(float *to, const float *from, unsigned bytes) { hopper::store_bytes(to, from, bytes, true); }
inline void close_bulk_group() { hopper::close(); }
template <int LEFT>
void wait_until_read() {
  hopper::wait_for_stores(LEFT, false);
}
template <int LEFT>
void wait_until_stored() {
  hopper::wait_for_stores(LEFT, true);
}
