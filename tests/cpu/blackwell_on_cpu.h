// What blackwell/tcgen05.cuh asks of the hardware, on the CPU; blackwell_on_cpu.cpp does it, from the tables of the PTX ISA.
//
// As in hopper_on_cpu.h whatever may be late is late: products and copies are done, and the mbarrier is told, when no
// thread can go on without. Descriptors are read bit by bit, and a reserved bit that is set is a fault. So is: an operand
// that changes between question and product, sums that are read before their product is done, scales that are copied over
// those of a product that may not have read them, a warp in other lanes than its own, columns that nobody allocated or
// that are not given back.
//
// Not here: what tcgen05_before_barrier and tcgen05_after_barrier order, but for the first of the latter.
#pragma once
#include "hopper_on_cpu.h"

namespace blackwell {
enum Kind { f16, nvfp4, mxfp8 };
struct Product {
  Kind kind;
  int blocks;
  unsigned d;
  unsigned long long a, b;
  unsigned how, scales_a, scales_b;
  bool add;
};

void allocate(unsigned *where, int columns);
void no_more();
void give_back(unsigned tmem, int columns);
void after_barrier();
void multiply(const Product &);
void copy_scales(unsigned tmem, unsigned long long from);
void commit(int blocks, void *barrier);
void load_sums(float *d, unsigned tmem);  // 32 columns
void wait_for_sums();
void load_for_pair(void *to, const void *map, void *barrier, int x, int y);
}  // namespace blackwell
