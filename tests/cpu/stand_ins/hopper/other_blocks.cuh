// The CPU's version of src/course_kernels/cuda/hopper/other_blocks.cuh: the same names, the same contract.
#pragma once
#include "address.cuh"

inline float float_of_block(const float *p, unsigned rank) { return hopper::read(address_in_cluster(p, rank)); }
