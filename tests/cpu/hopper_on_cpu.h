// What cuda/hopper/ asks of the hardware, on the CPU; the stand-ins of its headers call it, hopper_on_cpu.cpp does it.
//
// An asynchronous machine may do what it was asked at once or at the last moment; here it is always the last: a copy
// lands, a product reads its operands, a store reads its tile only when no thread can go on without. What a copy will
// overwrite is NaN from the moment it is asked for, and so are the sums of a product until they were waited for. An
// operand that changes between the question and the reading is a fault, and so is one that threads wrote without
// `fence_async` since: fence_async shows the machine everything that any thread has written until then.
//
// Not here: which thread fenced, memory order between blocks, what `wgmma_fence` is for within one batch of products.
#pragma once
#include <cstddef>

namespace hopper {
unsigned address(const void *p);
unsigned remote(const void *p, unsigned rank);

void init(void *barrier, unsigned arrivals);
void show_barriers();
void inval(void *barrier);
void show();
void show_cluster();  // what this block has written so far may be read by the others of the cluster
void arrive(unsigned barrier, bool arrives, unsigned bytes);  // the address may be of another block
bool has_ended(void *barrier, unsigned parity);
void wait(void *barrier, unsigned parity);

void load(void *to, const void *map, void *barrier, unsigned blocks, int rank, const int *at);
void store(const void *map, const void *from, bool adds, int rank, const int *at);
void load_bytes(void *to, const void *from, unsigned bytes, void *barrier);
void send(void *to, const void *from, unsigned bytes, void *barrier, unsigned rank);  // of a thread, to another block
void store_bytes(void *to, const void *from, unsigned bytes, bool adds);
void close();
void wait_for_stores(unsigned left, bool until_stored);

enum Numbers { bf16, f16, e4m3 };
struct Product {
  Numbers numbers;
  unsigned n;
  bool a_in_registers, a_mn, b_mn, add;
  unsigned long long a, b;
  bool operator==(const Product &p) const {
    return numbers == p.numbers && n == p.n && a_in_registers == p.a_in_registers && a_mn == p.a_mn && b_mn == p.b_mn &&
           add == p.add && a == p.a && b == p.b;
  }
};
void product(float *d, const Product &, const unsigned *a);
void fence();
void commit();
void wait_for_products(unsigned left);

void registers(unsigned of_a_thread);  // what setmaxnreg asks for, up or down
void named_barrier(int id, int threads, bool waits);
void cluster_arrive();
void cluster_wait();
float read(unsigned place);  // in another block's dynamic shared memory, as it was when that block showed it last
}  // namespace hopper
