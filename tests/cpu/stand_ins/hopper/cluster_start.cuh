// For CPUs: the same name.
#pragma once

#include "hopper_on_cpu.h"

inline void cluster_arrive_relaxed() { hopper::cluster_arrive(); }
