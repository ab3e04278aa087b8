// The CPU's version of src/course_kernels/cuda/hopper/mbarrier.cuh: the same names, the same contract.
#pragma once
#include <hopper/address.cuh>

struct alignas(8) Barrier {
  unsigned long long state;
};

inline void barrier_init(Barrier *b, unsigned arrivals) { hopper::init(b, arrivals); }
inline void fence_barrier_init() { hopper::show_barriers(); }
inline void barrier_inval(Barrier *b) { hopper::inval(b); }
inline void fence_async() { hopper::show(); }
inline void arrive(Barrier *b) { hopper::arrive(address_in_shared(b), true, 0); }
inline void expect_bytes(Barrier *b, unsigned bytes) { hopper::arrive(address_in_shared(b), false, bytes); }
inline void arrive_and_expect_bytes(Barrier *b, unsigned bytes) { hopper::arrive(address_in_shared(b), true, bytes); }
inline void arrive_remote_after_reading(Barrier *b, unsigned rank) { hopper::arrive(address_in_cluster(b, rank), true, 0); }
inline void arrive_remote(Barrier *b, unsigned rank) {
  hopper::show_cluster();
  arrive_remote_after_reading(b, rank);
}
inline bool try_wait(Barrier *b, unsigned parity) { return hopper::has_ended(b, parity); }
inline void wait(Barrier *b, unsigned parity) { hopper::wait(b, parity); }
inline void wait_for_cluster(Barrier *b, unsigned parity) { hopper::wait(b, parity); }
