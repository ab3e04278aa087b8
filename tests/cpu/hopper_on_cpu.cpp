// The machine behind hopper_on_cpu.h. Compiled once, and linked to the kernels that include a header of cuda/hopper/.
#include "hopper_on_cpu.h"

#include "cuda_on_cpu.h"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace hopper {
using fibers::blame;
using Bytes = std::vector<char>;

// --- memory ---------------------------------------------------------------------------------------

constexpr unsigned STATIC = 1u << 20;  // where addresses of other memory than the dynamic begin; no operand lies there
constexpr unsigned RANK = 1u << 24;

static void fault(const char *form, unsigned a = 0, unsigned b = 0, unsigned c = 0) {
  char text[300];
  std::snprintf(text, sizeof text, form, a, b, c);
  blame(text);
}

// As a card's: aligned as far as the kernel asked for, and not by chance further.
unsigned address(const void *p) {
  const char *first = fibers::dynamic_shared;
  const auto offset = static_cast<const char *>(p) - first;
  if (offset >= 0 && offset < static_cast<long>(sizeof fibers::dynamic_shared)) return offset;
  return STATIC + (reinterpret_cast<std::size_t>(p) & 0xfffff);
}
unsigned remote(const void *p, unsigned rank) { return address(p) | (rank + 1) * RANK; }

static bool is_dynamic(unsigned address, unsigned bytes, const char *what) {
  if (address + std::size_t(bytes) <= fibers::shared_base + fibers::shared_bytes) return true;
  blame((std::string(what) + " outside of the dynamic shared memory").c_str());
  return false;
}

static unsigned swizzle(unsigned row_bytes, unsigned address) {
  return row_bytes ? address ^ (address >> 7 & (row_bytes / 16 - 1)) << 4 : address;
}

// --- what every block has -------------------------------------------------------------------------

struct Map {  // as hopper_on_cpu.py writes it, innermost dimension first
  std::uint64_t magic;
  char *tensor;
  std::uint64_t strides[4];
  std::uint32_t sizes[5], box[5];
  std::uint8_t rank, bytes, swizzle, kind;  // kind: 1 float32, 2 bfloat16, 3 float16, 0 anything else
};
constexpr std::uint64_t MAP = 0x70616d2d726f736e;

struct Load {
  Map map{};  // of rank 0 for a copy in one dimension
  int at[5]{};
  const char *from = nullptr;
  unsigned to = 0, bytes = 0;
  Bytes sent{};  // what a thread sent from its registers, instead of `from`
};

struct Mbarrier {
  unsigned count, missing, phase, number;
  long bytes;
  bool shown;
  std::deque<Load> coming;
  std::vector<unsigned> wanted;  // parities that threads wait for
};

struct Store {
  Map map{};
  int at[5]{};
  char *to = nullptr;
  unsigned from = 0;
  bool adds = false, was_read = false;
  Bytes data;
};

// One product of a warpgroup, made of what its 128 threads ask.
struct Asked {
  Product what;
  unsigned threads = 0, group = 0;
  std::vector<float *> sums = std::vector<float *>(128);
  std::vector<float> a, b;  // [64][k], [k][n]
  Bytes raw_a, raw_b;       // as they lay in shared memory when the first thread asked
};

struct Sums {  // of one thread, the tensor cores' at the moment
  std::vector<float> numbers;
  unsigned products = 0;
};

struct Thread {
  std::deque<std::vector<Store>> stores{{}};  // the last group is open
  unsigned products = 0, commits = 0, waits_for = 0;
  unsigned met = 0;  // the meeting of the cluster for which it arrived last: others may have left that long before
  bool fenced = false;
  std::map<float *, Sums> sums;
  std::map<float *, std::pair<unsigned, std::vector<float>>> finished;  // and how often it had fenced then
  unsigned fences = 0;
};

struct Warpgroup {
  std::deque<Asked> asked;
  unsigned first = 0, settled = 0;  // number of asked[0]; groups that are done
  unsigned registers = 0;           // of a thread, once it has asked for another number
};

struct Named {
  int threads = 0, arrived = 0;
  unsigned round = 0;
};

struct Block {
  std::map<unsigned, Mbarrier> barriers;
  std::vector<Thread> threads;
  std::vector<Warpgroup> warpgroups;
  std::map<int, Named> named;
  Bytes seen;                                      // dynamic shared memory as the machine sees it
  std::vector<std::pair<unsigned, unsigned>> awaited;  // places that copies of other blocks will overwrite
  Bytes arrived;  // dynamic shared memory when a thread last arrived where others may see it: what they may read
};

static std::vector<Block> blocks(1);
struct Later;
static std::vector<std::vector<Later *>> put_off;  // by block of the cluster
struct Cluster {
  unsigned arrived = 0, round = 0;
};
static Cluster cluster;

static Block &here() { return blocks[fibers::rank]; }
static Thread &me() { return here().threads[fibers::current]; }

static void poison(unsigned address, unsigned bytes) {
  std::memset(fibers::dynamic_shared + address, 0xff, bytes);
  std::memset(here().seen.data() + address, 0xff, bytes);
}

static unsigned threads_of_block() { return blockDim.x * blockDim.y * blockDim.z; }

static void begin() {
  if (fibers::rank == 0) {
    blocks = std::vector<Block>(fibers::blocks_in_cluster);
    cluster = Cluster();
    put_off.assign(fibers::blocks_in_cluster, {});
  }
  here().threads.resize(threads_of_block());
  here().warpgroups.resize((threads_of_block() + 127) / 128);
  here().seen.assign(sizeof fibers::dynamic_shared, static_cast<char>(fibers::fill));
}

static void comes_back() {
  for (auto [address, bytes] : here().awaited) poison(address, bytes);
  here().awaited.clear();
}

void show() {
  const std::size_t end = fibers::shared_base + fibers::shared_bytes;
  std::memcpy(here().seen.data(), fibers::dynamic_shared, end);
}

static bool is_seen(unsigned address, unsigned bytes) {
  return std::memcmp(fibers::dynamic_shared + address, here().seen.data() + address, bytes) == 0;
}

// --- mbarriers ------------------------------------------------------------------------------------

constexpr std::uint64_t ALIVE = 0x6d62617272696572;

static Mbarrier *barrier_at(unsigned place) {
  const unsigned rank = place >= RANK ? place / RANK - 1 : fibers::rank, address = place % RANK;
  if (rank >= blocks.size()) {
    fault("block %u of the cluster is not there", rank);
    return nullptr;
  }
  const auto found = blocks[rank].barriers.find(address);
  if (found == blocks[rank].barriers.end()) {
    fault("no mbarrier was initialised at shared address 0x%x", address);
    return nullptr;
  }
  return &found->second;
}

static Mbarrier *barrier_of(void *p) {
  Mbarrier *b = barrier_at(address(p));
  if (b && std::memcmp(p, &ALIVE, 8) != 0) {
    fault("the mbarrier at shared address 0x%x was written over", address(p));
    return nullptr;
  }
  return b;
}

void init(void *p, unsigned arrivals) {
  if (reinterpret_cast<std::size_t>(p) % 8) return blame("an mbarrier is at no multiple of 8 bytes");
  if (arrivals == 0) return blame("an mbarrier of no arrivals");
  auto &all = here().barriers;
  std::memcpy(p, &ALIVE, 8);
  if (address(p) < STATIC) std::memcpy(here().seen.data() + address(p), &ALIVE, 8);
  all[address(p)] = {arrivals, arrivals, 0, unsigned(all.size() + 1), 0, false, {}, {}};
}
void show_barriers() {
  for (auto &[address, b] : here().barriers) b.shown = true;
}
void inval(void *p) {
  if (barrier_of(p)) here().barriers.erase(address(p));
}

static void settle(Mbarrier &b) {
  if (b.missing > 0 || b.bytes != 0) return;
  b.phase++;
  b.missing = b.count;
}

void show_cluster() {
  const char *first = fibers::dynamic_shared;
  here().arrived.assign(first, first + fibers::shared_base + fibers::shared_bytes);
}

void arrive(unsigned place, bool arrives, unsigned bytes) {
  Mbarrier *b = barrier_at(place);
  if (!b) return;
  b->bytes += bytes;
  if (arrives && b->missing-- == 0) {
    b->missing = 0;
    return fault("one arrival too many at the mbarrier at shared address 0x%x, of %u", place % RANK, b->count);
  }
  if (arrives) settle(*b);
}

static bool ended(const Mbarrier &b, unsigned parity) { return (b.phase & 1) != (parity & 1); }

bool has_ended(void *p, unsigned parity) {
  const Mbarrier *b = barrier_of(p);
  return !b || ended(*b, parity);
}

void wait(void *p, unsigned parity) {
  struct Phase : fibers::Event {
    Mbarrier *b;
    unsigned parity, address;
    bool ready() override { return ended(*b, parity); }
    void says(char *text, std::size_t room) override {
      std::snprintf(text, room,
                    "parity %u of the mbarrier at shared address 0x%x (number %u, its phase %u: %u of %u arrivals "
                    "and %ld bytes are missing)",
                    parity & 1, address, b->number, b->phase, b->missing, b->count, b->bytes);
    }
  } phase;
  phase.b = barrier_of(p), phase.parity = parity, phase.address = address(p);
  if (!phase.b || phase.ready()) return;
  phase.b->wanted.push_back(parity);
  fibers::wait_for(phase);
}

// --- the copy engine ------------------------------------------------------------------------------

// Calls each(offset in the tensor or -1 past its edges, place in shared memory, bytes) for every 16 bytes of a box.
template <class Each>
static void pieces(const Map &map, const int *at, unsigned shared, Each each) {
  const unsigned row = map.box[0] * map.bytes;
  std::uint32_t i[5] = {};
  unsigned rows = 1;
  for (int d = 1; d < map.rank; d++) rows *= map.box[d];
  for (unsigned r = 0; r < rows; r++) {
    bool inside = true;
    long long offset = 0;
    for (int d = 1; d < map.rank; d++) {
      const long long x = static_cast<long long>(at[d]) + i[d];
      inside &= x >= 0 && x < map.sizes[d];
      offset += x * static_cast<long long>(map.strides[d - 1]);
    }
    for (unsigned piece = 0; piece < row; piece += 16) {
      const unsigned to = swizzle(map.swizzle, shared + r * row + piece);
      for (unsigned e = 0; e < 16; e += map.bytes) {  // an edge may lie amid a piece
        const long long x = at[0] + static_cast<long long>(piece + e) / map.bytes;
        each(inside && x >= 0 && x < map.sizes[0] ? offset + x * map.bytes : -1, to + e, map.bytes);
      }
    }
    for (int d = 1; d < map.rank && ++i[d] == map.box[d]; d++) i[d] = 0;
  }
}

static unsigned bytes_of(const Map &map) {
  unsigned bytes = map.bytes;
  for (int d = 0; d < map.rank; d++) bytes *= map.box[d];
  return bytes;
}

static bool map_at(const void *p, int rank, unsigned shared, Map &map) {
  std::memcpy(&map, p, sizeof map);
  if (map.magic != MAP) return blame("a TensorMap that tensor_map has not made"), false;
  if (map.rank != rank) return fault("%u coordinates for a tensor of %u dimensions", rank, map.rank), false;
  if (shared % 128) return fault("a tile at shared address 0x%x, which is no multiple of 128 bytes", shared), false;
  return is_dynamic(shared, bytes_of(map), "a tile");
}

static void come(unsigned rank, unsigned barrier, const Load &load) {
  Mbarrier *b = barrier_at(barrier | (rank + 1) * RANK);
  if (!b) return;
  if (!b->shown) return blame("the copy engine meets an mbarrier before fence_barrier_init");
  for (const auto &[address, other] : blocks[rank].barriers)
    for (const Load &earlier : other.coming)
      if (earlier.to < load.to + load.bytes && load.to < earlier.to + earlier.bytes)
        return fault("a copy to shared address 0x%x, where an earlier one has not come yet", load.to);
  if (rank == fibers::rank) poison(load.to, load.bytes);
  else blocks[rank].awaited.emplace_back(load.to, load.bytes);
  b->coming.push_back(load);
}

void load(void *to, const void *map, void *barrier, unsigned mask, int rank, const int *at) {
  Load load;
  load.to = address(to);
  if (!barrier_of(barrier) || !map_at(map, rank, load.to, load.map)) return;
  std::memcpy(load.at, at, rank * sizeof *at);
  load.bytes = bytes_of(load.map);
  for (unsigned r = 0; r < 16; r++)
    if (mask ? mask >> r & 1 : r == fibers::rank) come(r, address(barrier), load);
}

void load_bytes(void *to, const void *from, unsigned bytes, void *barrier) {
  Load load;
  load.to = address(to), load.from = static_cast<const char *>(from), load.bytes = bytes;
  if ((load.to | reinterpret_cast<std::size_t>(from) | bytes) % 16)
    return blame("a copy in one dimension whose addresses or bytes are no multiple of 16");
  if (barrier_of(barrier) && is_dynamic(load.to, bytes, "a copy")) come(fibers::rank, address(barrier), load);
}

void send(void *to, const void *from, unsigned bytes, void *barrier, unsigned rank) {
  Load load;
  load.to = address(to), load.bytes = bytes;
  load.sent.assign(static_cast<const char *>(from), static_cast<const char *>(from) + bytes);
  if (load.to % 16) return blame("numbers sent to an address that is no multiple of 16");
  if (rank >= blocks.size()) return fault("block %u of the cluster is not there", rank);
  if (is_dynamic(load.to, bytes, "what is sent lies")) come(rank, address(barrier), load);
}

static void land(const Load &load) {
  char *written = fibers::dynamic_shared;
  if (!load.sent.empty()) std::memcpy(written + load.to, load.sent.data(), load.bytes);
  else if (load.map.rank == 0) std::memcpy(written + load.to, load.from, load.bytes);
  else
    pieces(load.map, load.at, load.to, [&](long long offset, unsigned to, unsigned bytes) {
      if (offset < 0) std::memset(written + to, 0, bytes);
      else std::memcpy(written + to, load.map.tensor + offset, bytes);
    });
  std::memcpy(here().seen.data() + load.to, written + load.to, load.bytes);
}

// --- stores ---------------------------------------------------------------------------------------

static Bytes tile_of(const Store &store, unsigned bytes) {
  Bytes data;
  const char *written = fibers::dynamic_shared;
  if (store.map.rank == 0) data.assign(written + store.from, written + store.from + bytes);
  else
    pieces(store.map, store.at, store.from, [&](long long, unsigned from, unsigned n) {
      data.insert(data.end(), written + from, written + from + n);
    });
  return data;
}

static void ask(Store store, unsigned bytes) {
  if (!is_seen(store.from, bytes)) return blame("a store of what threads have written without fence_async");
  store.data = tile_of(store, bytes);
  me().stores.back().push_back(std::move(store));
}

void store(const void *map, const void *from, bool adds, int rank, const int *at) {
  Store store;
  store.from = address(from), store.adds = adds;
  if (!map_at(map, rank, store.from, store.map)) return;
  if (adds && store.map.kind == 0) return blame("add_tile to a tensor of a type that is not added");
  std::memcpy(store.at, at, rank * sizeof *at);
  // A card calls it an illegal instruction; a load may begin there.
  if (std::any_of(at, at + rank, [](int x) { return x < 0; })) return blame("a store that begins before its tensor");
  ask(std::move(store), bytes_of(store.map));
}

void store_bytes(void *to, const void *from, unsigned bytes, bool adds) {
  Store store;
  store.from = address(from), store.to = static_cast<char *>(to), store.adds = adds;
  if ((store.from | reinterpret_cast<std::size_t>(to) | bytes) % 16)
    return blame("a store in one dimension whose addresses or bytes are no multiple of 16");
  if (is_dynamic(store.from, bytes, "a store")) ask(std::move(store), bytes);
}

void close() { me().stores.emplace_back(); }

static float from_bf16(std::uint16_t bits) {
  const std::uint32_t wide = std::uint32_t(bits) << 16;
  float x;
  std::memcpy(&x, &wide, 4);
  return x;
}
static float from_f16(std::uint16_t bits) {
  _Float16 x;
  std::memcpy(&x, &bits, 2);
  return x;
}
static float from_e4m3(std::uint8_t bits) {
  const int exponent = bits >> 3 & 15, mantissa = bits & 7;
  if ((bits & 127) == 127) return NAN;
  const float x = exponent ? std::ldexp(8.0f + mantissa, exponent - 10) : std::ldexp(float(mantissa), -9);
  return bits & 128 ? -x : x;
}

static void put(char *to, const char *from, unsigned bytes, int kind) {
  if (kind == 0) return void(std::memcpy(to, from, bytes));
  if (kind == 1) {
    float x, y;
    std::memcpy(&x, to, 4), std::memcpy(&y, from, 4);
    x += y;
    return void(std::memcpy(to, &x, 4));
  }
  std::uint16_t x, y;
  std::memcpy(&x, to, 2), std::memcpy(&y, from, 2);
  if (kind == 2) {
    const float sum = from_bf16(x) + from_bf16(y);
    std::uint32_t wide;
    std::memcpy(&wide, &sum, 4);
    x = (wide + 0x7fff + (wide >> 16 & 1)) >> 16;
  } else {
    const _Float16 sum = from_f16(x) + from_f16(y);
    std::memcpy(&x, &sum, 2);
  }
  std::memcpy(to, &x, 2);
}

static void read(Store &store) {
  if (store.was_read) return;
  store.was_read = true;
  if (tile_of(store, store.data.size()) != store.data)
    fault("the tile at shared address 0x%x changed before its store had read it", store.from);
}

static void write(Store &store) {
  read(store);
  const char *data = store.data.data();
  if (store.map.rank == 0) {
    const unsigned step = store.adds ? 4 : store.data.size();
    for (unsigned i = 0; i < store.data.size(); i += step) put(store.to + i, data + i, step, store.adds);
  } else {
    pieces(store.map, store.at, store.from, [&](long long offset, unsigned, unsigned bytes) {
      if (offset >= 0) put(store.map.tensor + offset, data, bytes, store.adds ? store.map.kind : 0);
      data += bytes;
    });
  }
}

static void settle_stores(Thread &thread, unsigned left, bool until_stored) {
  for (std::size_t i = 0; i + left + 1 < thread.stores.size(); i++)
    for (Store &store : thread.stores[i]) read(store);
  while (until_stored && thread.stores.size() > left + 1) {
    for (Store &store : thread.stores.front()) write(store);
    thread.stores.pop_front();
  }
}

// A thread that waits lets all others go on first: they may write to what has not been read.
struct Later : fibers::Event {
  bool now = false;
  const char *what;
  explicit Later(const char *what) : what(what) {}
  bool ready() override { return now; }
  void says(char *text, std::size_t room) override { std::snprintf(text, room, "%s", what); }
};

static void let_all_others_go_on(const char *what) {
  Later later(what);
  put_off[fibers::rank].push_back(&later);
  fibers::wait_for(later);
}

void wait_for_stores(unsigned left, bool until_stored) {
  if (me().stores.size() <= left + 1) return;
  let_all_others_go_on("its stores");
  settle_stores(me(), left, until_stored);
}

// --- products -------------------------------------------------------------------------------------

static float number(const char *p, Numbers numbers) {
  std::uint16_t bits;
  if (numbers == e4m3) return from_e4m3(*p);
  std::memcpy(&bits, p, 2);
  return numbers == bf16 ? from_bf16(bits) : from_f16(bits);
}

// A matrix of `rows` (m or n) by 32 bytes of k, told by a descriptor: raw[row][k], as its numbers lie in memory.
static Bytes operand(unsigned long long d, unsigned rows, bool mn_major, unsigned bytes) {
  const unsigned start = (d & 0x3fff) << 4, leading = (d >> 16 & 0x3fff) << 4, stride = (d >> 32 & 0x3fff) << 4;
  const unsigned row = d >> 62 ? 256 >> (d >> 62) : 0, k = 32 / bytes;
  Bytes raw(rows * 32);
  if (row == 0) return blame("a descriptor without a swizzle"), raw;
  if (start >> 7 & (row / 16 - 1))
    return fault("a matrix begins amid the swizzle's pattern, at shared address 0x%x", start), raw;
  for (unsigned r = 0; r < rows; r++)
    for (unsigned i = 0; i < k; i++) {
      const unsigned across = row / bytes;  // numbers of a panel's row
      const unsigned place = mn_major ? start + r % across * bytes + r / across * leading + i % 8 * row + i / 8 * stride
                                      : start + r % 8 * row + r / 8 * stride + i * bytes;
      const unsigned from = swizzle(row, place);
      if (!is_dynamic(from, bytes, "an operand of a product")) return raw;
      if (!is_seen(from, bytes)) return blame("a product of what threads have written without fence_async"), raw;
      std::memcpy(raw.data() + r * 32 + i * bytes, fibers::dynamic_shared + from, bytes);
    }
  return raw;
}

static unsigned k_of(const Product &p) { return p.numbers == e4m3 ? 32 : 16; }

static void begin_product(Asked &asked) {
  const Product &p = asked.what;
  const unsigned k = k_of(p), bytes = 32 / k;
  asked.a.resize(64 * k), asked.b.resize(k * p.n);
  if (!p.a_in_registers) {
    asked.raw_a = operand(p.a, 64, p.a_mn, bytes);
    for (unsigned i = 0; i < 64 * k; i++) asked.a[i] = number(&asked.raw_a[i * bytes], p.numbers);
  }
  asked.raw_b = operand(p.b, p.n, p.b_mn, bytes);
  for (unsigned n = 0; n < p.n; n++)
    for (unsigned i = 0; i < k; i++) asked.b[i * p.n + n] = number(&asked.raw_b[n * 32 + i * bytes], p.numbers);
}

// A NaN that becomes another one as soon as somebody reckons with it.
constexpr std::uint32_t TAKEN = 0xffbfffff;

static unsigned row_of(unsigned thread, unsigned i) { return thread / 32 * 16 + thread % 32 / 4 + i / 2 % 2 * 8; }
static unsigned column_of(unsigned thread, unsigned i) { return i / 4 * 8 + thread % 4 * 2 + i % 2; }

void fence() { me().fences++, me().fenced = true; }

void product(float *d, const Product &p, const unsigned *a) {
  Warpgroup &group = here().warpgroups[fibers::current / 128];
  const unsigned thread = fibers::current % 128, count = p.n / 2, place = me().products++ - group.first;
  if (threads_of_block() % 128) return blame("a product in a block that is not made of warpgroups");
  if (place >= group.asked.size()) {
    group.asked.emplace_back();
    group.asked[place].what = p, group.asked[place].group = me().commits;
    begin_product(group.asked[place]);
  }
  Asked &asked = group.asked[place];
  if (!(asked.what == p) || asked.group != me().commits)
    return blame("the threads of a warpgroup ask for different products");
  asked.sums[thread] = d, asked.threads++;
  if (p.a_in_registers) {
    if (!me().fenced) return blame("A in registers, and no wgmma_fence since the last wait");
    const unsigned k = k_of(p), together = k / 8;  // numbers in a register
    for (unsigned i = 0; i < 4; i++)
      for (unsigned j = 0; j < together; j++)
        asked.a[row_of(thread, i % 2 * 2) * k + i / 2 * 4 * together + thread % 4 * together + j] =
            number(reinterpret_cast<const char *>(&a[i]) + j * 4 / together, p.numbers);
  }
  auto found = me().sums.find(d);
  if (found == me().sums.end()) {
    const auto before = me().finished.find(d);
    const bool same = before != me().finished.end() && before->second.second.size() == count &&
                      std::memcmp(before->second.second.data(), d, count * 4) == 0;
    if (!same && me().fences <= (before != me().finished.end() ? before->second.first : 0))
      return blame("sums that threads have written go to a product without wgmma_fence");
    found = me().sums.emplace(d, Sums{std::vector<float>(d, d + count)}).first;
    for (unsigned i = 0; i < count; i++) std::memcpy(&d[i], &TAKEN, 4);
  } else if (found->second.numbers.size() != count) {
    return blame("sums of one width in a product of another, before a wait");
  }
  found->second.products++;
}

void commit() { me().commits++; }

static void run(Asked &asked, unsigned first_thread) {
  const Product &p = asked.what;
  const unsigned k = k_of(p), count = p.n / 2;
  if ((!p.a_in_registers && operand(p.a, 64, p.a_mn, 32 / k) != asked.raw_a) ||
      operand(p.b, p.n, p.b_mn, 32 / k) != asked.raw_b)
    return fault("an operand of a product changed before the product had read it: A by 0x%x, B by 0x%x",
                 p.a_in_registers ? 0 : (p.a & 0x3fff) << 4, (p.b & 0x3fff) << 4);
  std::vector<float> d(64 * p.n);
  for (unsigned t = 0; t < 128; t++) {
    const auto &numbers = here().threads[first_thread + t].sums[asked.sums[t]].numbers;
    for (unsigned i = 0; i < count && p.add; i++) d[row_of(t, i) * p.n + column_of(t, i)] = numbers[i];
  }
  for (unsigned m = 0; m < 64; m++)
    for (unsigned i = 0; i < k; i++) {
      const float x = asked.a[m * k + i], *b = &asked.b[i * p.n];
      float *to = &d[m * p.n];
      for (unsigned n = 0; n < p.n; n++) to[n] += x * b[n];
    }
  for (unsigned t = 0; t < 128; t++) {
    Thread &thread = here().threads[first_thread + t];
    float *registers = asked.sums[t];
    Sums &sums = thread.sums[registers];
    for (unsigned i = 0; i < count; i++) sums.numbers[i] = d[row_of(t, i) * p.n + column_of(t, i)];
    if (--sums.products > 0) continue;
    for (unsigned i = 0; i < count; i++) {
      std::uint32_t bits;
      std::memcpy(&bits, &registers[i], 4);
      if (bits != TAKEN) return blame("sums were written while a product was under way");
    }
    std::memcpy(registers, sums.numbers.data(), count * 4);
    thread.finished[registers] = {thread.fences, std::move(sums.numbers)};
    thread.sums.erase(registers);
  }
}

// Products up to group `until` of a warpgroup; true if there were any.
static bool settle_products(unsigned number, unsigned until) {
  Warpgroup &group = here().warpgroups[number];
  bool any = false;
  while (!group.asked.empty() && group.asked.front().group < until) {
    if (group.asked.front().threads < 128) break;  // the others have not come so far
    run(group.asked.front(), number * 128);
    group.asked.pop_front();
    group.first++;
    any = true;
  }
  const bool done = group.asked.empty() || group.asked.front().group >= until;
  if (done && group.settled < until) group.settled = until, any = true;
  return any;
}

void wait_for_products(unsigned left) {
  struct Settled : fibers::Event {
    Warpgroup *group;
    unsigned until;
    bool ready() override { return group->settled >= until; }
    void says(char *text, std::size_t room) override {
      std::snprintf(text, room, "group %u of products, for which not all threads of the warpgroup have asked", until);
    }
  } settled;
  me().fenced = false;
  if (me().commits <= left) return;
  settled.group = &here().warpgroups[fibers::current / 128], settled.until = me().commits - left;
  me().waits_for = settled.until;
  fibers::wait_for(settled);
  me().waits_for = 0;
}

// --- registers ------------------------------------------------------------------------------------

// A block begins with as many for every thread, in eights. What is more than its warpgroups gave back never comes.
void registers(unsigned of_a_thread) {
  const unsigned at_first = 65536 / threads_of_block() / 8 * 8;
  unsigned there = 0, wanted = 0;
  here().warpgroups[fibers::current / 128].registers = of_a_thread;
  for (const Warpgroup &group : here().warpgroups) {
    if (!group.registers) return;  // it may give some back yet
    there += at_first, wanted += group.registers;
  }
  if (wanted > there) fault("deadlock: warpgroups ask for %u registers, and the block has %u", 128 * wanted, 128 * there);
}

// --- barriers of some threads, and of the cluster -------------------------------------------------

void named_barrier(int id, int threads, bool waits) {
  struct Round : fibers::Event {
    Named *barrier;
    unsigned round;
    int id;
    bool ready() override { return barrier->round != round; }
    void says(char *text, std::size_t room) override {
      std::snprintf(text, room, "named barrier %d, where %d of %d threads have arrived", id, barrier->arrived,
                    barrier->threads);
    }
  } round;
  if (id < 1 || id > 15 || threads % 32 || threads <= 0) return fault("named barrier %u of %u threads", id, threads);
  Named &barrier = here().named[id];
  if (barrier.arrived == 0) barrier.threads = threads;
  if (barrier.threads != threads)
    return fault("named barrier %u: once of %u threads, once of %u", id, barrier.threads, threads);
  round.barrier = &barrier, round.round = barrier.round, round.id = id;
  if (++barrier.arrived == threads) barrier.arrived = 0, barrier.round++;
  if (waits) fibers::wait_for(round);
}

static bool cluster_is_there() {
  const unsigned all = fibers::blocks_in_cluster * threads_of_block();
  if (cluster.arrived == 0 || cluster.arrived + fibers::ended_in_cluster() < all) return false;
  cluster.arrived = 0, cluster.round++;
  return true;
}
void cluster_arrive() {
  show_cluster();
  me().met = cluster.round;
  cluster.arrived++;
}
void cluster_wait() {
  struct Round : fibers::Event {
    unsigned round = me().met;
    bool ready() override { return cluster.round != round || cluster_is_there(); }
    void says(char *text, std::size_t room) override {
      std::snprintf(text, room, "the cluster, where %u threads have arrived", cluster.arrived);
    }
  } round;
  fibers::wait_for(round);
}

float read(unsigned place) {
  const unsigned rank = place / RANK - 1, address = place % RANK;
  float x = 0;
  if (rank >= blocks.size()) return fault("block %u of the cluster is not there", rank), x;
  const Bytes &there = blocks[rank].arrived;
  if (address + sizeof x > there.size()) return fault("a load from another block before the cluster's barrier"), x;
  std::memcpy(&x, there.data() + address, sizeof x);
  return x;
}

// --- when nobody can go on ------------------------------------------------------------------------

// Do one of the things that were put off, for this block: first what reads shared memory, then what writes it.
static bool stuck() {
  for (unsigned g = 0; g < here().warpgroups.size(); g++)
    for (unsigned t = g * 128; t < here().threads.size() && t < g * 128 + 128; t++)
      if (here().threads[t].waits_for > here().warpgroups[g].settled && settle_products(g, here().threads[t].waits_for))
        return true;
  if (!put_off[fibers::rank].empty()) {
    for (Later *later : put_off[fibers::rank]) later->now = true;
    put_off[fibers::rank].clear();
    return true;
  }
  for (auto &[address, b] : here().barriers) {
    bool waited_for = false;
    for (const unsigned parity : b.wanted) waited_for |= !ended(b, parity);
    if (!waited_for) b.wanted.clear();
    if (!waited_for || b.coming.empty()) continue;
    const unsigned phase = b.phase;
    while (!b.coming.empty() && b.phase == phase) {
      land(b.coming.front());
      b.bytes -= b.coming.front().bytes;
      b.coming.pop_front();
      settle(b);
    }
    return true;
  }
  return false;
}

static void end() {
  for (Thread &thread : here().threads) {
    for (auto &group : thread.stores)
      for (Store &store : group)
        if (!store.was_read) return blame("a block ends before its stores have been read");
    if (thread.stores.back().size()) return blame("a store in a group that was never closed");
    settle_stores(thread, 0, true);
    if (!thread.sums.empty()) return blame("a block ends while products are under way");
  }
  for (auto &[address, b] : here().barriers)
    if (!b.coming.empty())
      return fault("a block ends while a copy is coming to the mbarrier at shared address 0x%x", address);
}

static const bool ready = [] {
  fibers::hooks = {begin, comes_back, stuck, end};
  return true;
}();
}  // namespace hopper
