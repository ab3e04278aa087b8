// Copies from global to shared memory that pass no register, and that nobody waits for until she needs them.
//
// Contract  a copy is complete for the thread that asked for it once `wait_for_all_but<N>` has returned and the copy
//           is not among its N youngest groups; for the threads of the block after a barrier behind that
// Limits    compute capability 8.0 and above; both addresses must be multiples of the bytes copied
// Source    PTX ISA, cp.async, cp.async.commit_group and cp.async.wait_group
#pragma once

// The shared address space counts from zero; an instruction that names it wants the short address.
__device__ inline unsigned shared_address(const void *p) { return static_cast<unsigned>(__cvta_generic_to_shared(p)); }

// `take` bytes of `from`, and zeros for the rest of the 16. With 0 nothing is read, but `from` must be an address.
__device__ inline void copy_16_bytes(void *to, const void *from, int take = 16) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared_address(to)), "l"(from), "r"(take) : "memory");
}

__device__ inline void copy_4_bytes(void *to, const void *from, int take = 4) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(shared_address(to)), "l"(from), "r"(take) : "memory");
}

// Everything asked for since the last call becomes one group.
__device__ inline void close_group() { asm volatile("cp.async.commit_group;" ::: "memory"); }

template <int N>
__device__ inline void wait_for_all_but() {
  asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory");
}
