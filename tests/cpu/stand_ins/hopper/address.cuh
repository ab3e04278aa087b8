// The CPU's version of src/course_kernels/cuda/hopper/address.cuh: the same names, the same contract.
#pragma once
#include "hopper_on_cpu.h"

inline unsigned address_in_shared(const void *p) { return hopper::address(p); }
inline unsigned address_in_cluster(const void *p, unsigned rank) { return hopper::remote(p, rank); }
