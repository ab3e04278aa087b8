// The machine behind blackwell_on_cpu.h: Hopper's, and tensor memory, with its products, beside it.
#include "hopper_on_cpu.cpp"

#include "blackwell_on_cpu.h"

#include <array>
#include <initializer_list>

namespace blackwell {
using namespace hopper;
using Product = blackwell::Product;
using Descriptor = unsigned long long;

constexpr unsigned LANES = 128, COLUMNS = 512;

static unsigned bits(Descriptor x, unsigned first, unsigned last) { return x >> first & ((2ull << (last - first)) - 1); }

// --- the instruction descriptor -------------------------------------------------------------------

struct How {
  unsigned M, N;
  bool bf16, a_mn, b_mn;
  unsigned scale_a, scale_b;  // at which byte of a word the scales begin
};

// Bits that have to be as said; the first that is not is told.
static bool are(unsigned how, std::initializer_list<std::array<unsigned, 3>> fields) {
  for (const auto &[first, last, wanted] : fields)
    if (bits(how, first, last) != wanted)
      return fault("an instruction descriptor with %u in the bits from %u on, and not %u", bits(how, first, last), first,
                   wanted), false;
  return true;
}

static bool read(const Product &p, How &how) {
  const unsigned x = p.how;
  how.M = bits(x, 24, 28) << 4, how.N = bits(x, 17, 22) << 3;
  if (p.kind == f16) {
    if (!are(x, {{0, 3, 0}, {4, 5, 1}, {6, 6, 0}, {13, 14, 0}, {23, 23, 0}, {29, 31, 0}})) return false;
    how.bf16 = bits(x, 7, 9), how.a_mn = bits(x, 15, 15), how.b_mn = bits(x, 16, 16);
    if (bits(x, 7, 9) > 1 || bits(x, 10, 12) != bits(x, 7, 9)) return blame("A and B of types that do not go together"), false;
  } else if (p.kind == nvfp4) {
    if (!are(x, {{0, 6, 0}, {7, 9, 1}, {10, 11, 1}, {12, 16, 0}, {23, 23, 0}, {24, 26, 0}, {29, 31, 0}})) return false;
  } else {
    if (!are(x, {{0, 3, 0}, {6, 6, 0}, {7, 9, 0}, {10, 12, 0}, {13, 16, 0}, {23, 23, 1}, {31, 31, 0}})) return false;
    how.scale_a = bits(x, 29, 30), how.scale_b = bits(x, 4, 5);
  }
  if (how.M != 128u * p.blocks) return fault("a product of %u rows by %u blocks", how.M, p.blocks), false;
  const unsigned step = p.kind == f16 ? 16 : 8;
  if (how.N % step || how.N == 0 || how.N > 256) return fault("a product of %u columns", how.N), false;
  return true;
}

// --- tensor memory --------------------------------------------------------------------------------

struct Order {
  enum What { product, copy, commit } what;
  Product p{};
  How how{};
  Bytes asked_a, asked_b;            // as they were in the asking block when it asked
  Bytes a[2], b[2];                  // of both blocks
  bool taken[2] = {};
  unsigned tmem = 0, barrier = 0;
  Descriptor from = 0;
  int blocks = 1;
};

struct PairLoad {
  Load load;
  unsigned barrier;  // its address in the first block
};

struct State {
  std::vector<std::uint32_t> cells = std::vector<std::uint32_t>(LANES * COLUMNS, ~0u);  // NaN
  std::vector<int> held = std::vector<int>(COLUMNS), writes = held, reads = held;
  unsigned first = 0, columns = 0;
  bool no_more = false;
  std::deque<Order> orders;
  std::deque<PairLoad> coming;
  std::map<unsigned, std::vector<std::pair<float *, std::vector<float>>>> loaded;  // by thread
  std::map<unsigned, unsigned> fenced;
};
static std::vector<State> states;
static State &mine() { return states[fibers::rank]; }

static bool is_held(const State &s, unsigned column, unsigned count, const char *what) {
  bool held = column + count <= COLUMNS;
  for (unsigned c = column; held && c < column + count; c++) held = s.held[c];
  if (!held) blame((std::string(what) + " outside of the allocated tensor memory").c_str());
  return held;
}

void allocate(unsigned *where, int columns) {
  if (fibers::current % 32) return;
  State &s = mine();
  if (columns < 32 || columns > 512 || columns & (columns - 1)) return fault("%u columns of tensor memory", columns);
  if (s.no_more) return blame("tensor memory asked for after no more was to be");
  if (s.columns) return blame("tensor memory is asked for twice");
  s.first = COLUMNS - columns, s.columns = columns;  // the last ones, since nobody is promised the first
  for (unsigned c = s.first; c < COLUMNS; c++) s.held[c] = 1;
  *where = s.first;
}
void no_more() { mine().no_more = true; }
void give_back(unsigned tmem, int columns) {
  if (fibers::current % 32) return;
  State &s = mine();
  if (tmem != s.first || unsigned(columns) != s.columns) return blame("other tensor memory given back than was allocated");
  for (unsigned c = s.first; c < s.first + columns; c++) {
    if (s.writes[c] || s.reads[c]) return blame("tensor memory given back while a product is under way");
    s.held[c] = 0;
  }
  s.columns = 0;
}
void after_barrier() { mine().fenced[fibers::current]++; }

// --- what is asked --------------------------------------------------------------------------------

static unsigned size_of(Kind kind) { return kind == f16 ? 2 : 1; }

static bool is_operand(Descriptor d) {
  if (bits(d, 14, 15) || bits(d, 30, 31) || bits(d, 49, 60)) return blame("a descriptor with reserved bits"), false;
  if (bits(d, 46, 48) != 1) return blame("a descriptor without the constant in its bits 46 to 48"), false;
  if (bits(d, 61, 63) % 2) return blame("a descriptor with a swizzle that there is not"), false;
  return true;
}

static void take(Order &o, unsigned rank) {
  const unsigned half = rank % 2;
  o.a[half] = operand(o.p.a, 128, o.how.a_mn, size_of(o.p.kind));
  o.b[half] = operand(o.p.b, o.how.N / o.p.blocks, o.how.b_mn, size_of(o.p.kind));
  o.taken[half] = true;
  if (half == 0 && (o.a[0] != o.asked_a || o.b[0] != o.asked_b))
    fault("an operand of a product changed before the product had read it: A by 0x%x, B by 0x%x",
          bits(o.p.a, 0, 13) << 4, bits(o.p.b, 0, 13) << 4);
}

static constexpr unsigned SCALE_COLUMNS = 4;

void multiply(const Product &p) {
  Order o{Order::product};
  o.p = p, o.blocks = p.blocks;
  if (!mine().fenced[fibers::current]) return blame("a product by a thread without tcgen05_after_barrier");
  if (p.blocks == 2 && fibers::rank % 2) return blame("the second block of a pair asks for a product");
  if (!read(p, o.how) || !is_operand(p.a) || !is_operand(p.b)) return;
  for (unsigned r = fibers::rank; r < fibers::rank + p.blocks; r++)
    if (!is_held(states[r], p.d, o.how.N, "sums")) return;
  if (p.kind != f16)
    for (unsigned scales : {p.scales_a, p.scales_b + (o.how.N - 1) / 128 * SCALE_COLUMNS}) {
      if (!is_held(mine(), scales, SCALE_COLUMNS, "scales")) return;
      if (scales < p.d + o.how.N && p.d < scales + SCALE_COLUMNS) return blame("sums where scales are");
      for (unsigned c = scales; c < scales + SCALE_COLUMNS; c++) mine().reads[c]++;
    }
  for (unsigned r = fibers::rank; r < fibers::rank + p.blocks; r++)
    for (unsigned c = p.d; c < p.d + o.how.N; c++) states[r].writes[c]++;
  o.asked_a = operand(p.a, 128, o.how.a_mn, size_of(p.kind));
  o.asked_b = operand(p.b, o.how.N / p.blocks, o.how.b_mn, size_of(p.kind));
  mine().orders.push_back(std::move(o));
}

static Bytes scales_at(Descriptor d) {
  const unsigned start = bits(d, 0, 13) << 4, stride = bits(d, 32, 45) << 4;
  Bytes raw(512);
  if (bits(d, 61, 63)) return blame("scales with a swizzle"), raw;
  for (unsigned row = 0; row < 32; row++) {
    const unsigned from = start + row % 8 * 16 + row / 8 * stride;
    if (!is_dynamic(from, 16, "scales")) return raw;
    if (!is_seen(from, 16)) return blame("a copy of scales that threads have written without fence_async"), raw;
    std::memcpy(&raw[row * 16], fibers::dynamic_shared + from, 16);
  }
  return raw;
}

void copy_scales(unsigned tmem, Descriptor from) {
  Order o{Order::copy};
  o.tmem = tmem, o.from = from;
  if (!is_operand(from) || !is_held(mine(), tmem, SCALE_COLUMNS, "a copy of scales")) return;
  for (unsigned c = tmem; c < tmem + SCALE_COLUMNS; c++)
    if (mine().reads[c] || mine().writes[c]) return blame("scales are copied over what a product may not have read");
  o.asked_a = scales_at(from);
  mine().orders.push_back(std::move(o));
}

void commit(int blocks, void *barrier) {
  if (!barrier_of(barrier)) return;
  Order o{Order::commit};
  o.barrier = address(barrier), o.blocks = blocks;
  mine().orders.push_back(std::move(o));
}

void load_sums(float *d, unsigned tmem) {
  State &s = mine();
  const unsigned lane = tmem >> 16, column = tmem & 0xffff;
  if (!s.fenced[fibers::current]) return blame("sums read by a thread without tcgen05_after_barrier");
  if (lane != fibers::current / 32 % 4 * 32)
    return fault("warp %u reads from lane %u of tensor memory on", fibers::current / 32, lane);
  if (!is_held(s, column, 32, "sums are read")) return;
  std::vector<float> numbers(32);
  for (unsigned c = 0; c < 32; c++) {
    if (s.writes[column + c]) return blame("sums are read while a product writes them");
    std::memcpy(&numbers[c], &s.cells[(lane + fibers::current % 32) * COLUMNS + column + c], 4);
    d[c] = NAN;
  }
  s.loaded[fibers::current].emplace_back(d, std::move(numbers));
}
void wait_for_sums() {
  for (auto &[d, numbers] : mine().loaded[fibers::current]) std::memcpy(d, numbers.data(), numbers.size() * 4);
  mine().loaded[fibers::current].clear();
}

void load_for_pair(void *to, const void *map, void *barrier, int x, int y) {
  PairLoad one;
  const int at[2] = {x, y};
  one.load.to = address(to), one.barrier = address(barrier);
  const Mbarrier *b = barrier_at(one.barrier | (fibers::rank / 2 * 2 + 1) * RANK);
  if (!b || !map_at(map, 2, one.load.to, one.load.map)) return;
  if (!b->shown) return blame("the copy engine meets an mbarrier before fence_barrier_init");
  std::memcpy(one.load.at, at, sizeof at);
  one.load.bytes = bytes_of(one.load.map);
  for (const PairLoad &earlier : mine().coming)
    if (earlier.load.to < one.load.to + one.load.bytes && one.load.to < earlier.load.to + earlier.load.bytes)
      return fault("a copy to shared address 0x%x, where an earlier one has not come yet", one.load.to);
  poison(one.load.to, one.load.bytes);
  mine().coming.push_back(one);
}

// --- what is done ---------------------------------------------------------------------------------

static float e2m1(unsigned code) {
  static const float values[] = {0, 0.5, 1, 1.5, 2, 3, 4, 6};
  return code & 8 ? -values[code & 7] : values[code & 7];
}

static float element(const Bytes &raw, unsigned row, unsigned k, const Order &o) {
  const char *numbers = &raw[row * 32];
  if (o.p.kind == f16) return number(numbers + 2 * k, o.how.bf16 ? bf16 : hopper::f16);
  if (o.p.kind == mxfp8) return from_e4m3(numbers[k]);
  return e2m1(numbers[k / 2] >> k % 2 * 4 & 15);
}

// The scale of a row for the k of a product, the same in all four quarters of the lanes.
static float scale_of(const State &s, unsigned tmem, unsigned row, unsigned k, const Order &o, unsigned which) {
  std::uint32_t word = s.cells[row % 32 * COLUMNS + tmem + row / 32];
  for (unsigned quarter = 1; quarter < 4; quarter++)
    if (s.cells[(32 * quarter + row % 32) * COLUMNS + tmem + row / 32] != word)
      return blame("scales that are not the same in every quarter of the lanes"), 0;
  const unsigned byte = word >> 8 * (o.p.kind == nvfp4 ? k / 16 : which) & 255;
  if (o.p.kind == nvfp4) return from_e4m3(byte & 127);
  return byte == 255 ? NAN : std::ldexp(1.0f, int(byte) - 127);
}

static void run_product(Order &o, unsigned leader) {
  const unsigned k = o.p.kind == f16 ? 16 : o.p.kind == nvfp4 ? 64 : 32, N = o.how.N, of_block = N / o.p.blocks;
  std::vector<float> b(k * N), a(k);
  for (unsigned n = 0; n < N; n++)
    for (unsigned i = 0; i < k; i++) {
      const float scale = o.p.kind == f16 ? 1 : scale_of(states[leader], o.p.scales_b, n, i, o, o.how.scale_b);
      b[i * N + n] = element(o.b[n / of_block], n % of_block, i, o) * scale;
    }
  for (unsigned r = 0; r < unsigned(o.p.blocks); r++) {
    State &s = states[leader + r];
    for (unsigned m = 0; m < 128; m++) {
      std::vector<float> d(N);
      if (o.p.add) std::memcpy(d.data(), &s.cells[m * COLUMNS + o.p.d], N * 4);
      for (unsigned i = 0; i < k; i++) {
        const float scale = o.p.kind == f16 ? 1 : scale_of(s, o.p.scales_a, m, i, o, o.how.scale_a);
        const float x = element(o.a[r], m, i, o) * scale, *row = &b[i * N];
        for (unsigned n = 0; n < N; n++) d[n] += x * row[n];
      }
      std::memcpy(&s.cells[m * COLUMNS + o.p.d], d.data(), N * 4);
    }
    for (unsigned c = o.p.d; c < o.p.d + N; c++) s.writes[c]--;
  }
  if (o.p.kind != f16)
    for (unsigned scales : {o.p.scales_a, o.p.scales_b + (N - 1) / 128 * SCALE_COLUMNS})
      for (unsigned c = scales; c < scales + SCALE_COLUMNS; c++) states[leader].reads[c]--;
}

static void run_copy(const Order &o, State &s) {
  if (scales_at(o.from) != o.asked_a) return blame("scales changed before they were copied");
  for (unsigned lane = 0; lane < LANES; lane++)
    for (unsigned c = 0; c < SCALE_COLUMNS; c++)
      std::memcpy(&s.cells[lane * COLUMNS + o.tmem + c], &o.asked_a[lane % 32 * 16 + c * 4], 4);
}

// One of the things that were put off, as far as it can be done in this block.
static bool work() {
  if (!mine().coming.empty()) {
    const PairLoad one = mine().coming.front();
    mine().coming.pop_front();
    land(one.load);
    if (Mbarrier *b = barrier_at(one.barrier | (fibers::rank / 2 * 2 + 1) * RANK)) b->bytes -= one.load.bytes, settle(*b);
    return true;
  }
  const unsigned pair = fibers::rank / 2 * 2;
  for (const unsigned leader : {fibers::rank, pair}) {
    auto &orders = states[leader].orders;
    bool took = false;
    for (Order &o : orders) {  // operands of this block, up to the next who waits for it
      if (o.what == Order::commit) break;
      if (o.what != Order::product || o.taken[fibers::rank % 2]) continue;
      if (o.blocks == 1 && leader != fibers::rank) continue;
      if (o.blocks == 1) o.taken[1] = o.taken[0] = true;
      take(o, o.blocks == 1 ? 0 : fibers::rank);
      took = true;
    }
    bool ran = false;
    while (!orders.empty()) {
      Order &o = orders.front();
      if (o.what == Order::product) {
        if (!o.taken[0] || !o.taken[1]) break;
        run_product(o, leader);
      } else if (o.what == Order::copy) {
        if (leader != fibers::rank) break;
        run_copy(o, states[leader]);
      } else {
        for (unsigned r = leader; r < leader + o.blocks; r++) hopper::arrive(o.barrier | (r + 1) * RANK, true, 0);
      }
      const bool told = o.what == Order::commit;
      orders.pop_front();
      ran = true;
      if (told) break;
    }
    if (took || ran) return true;
    if (leader == pair) break;
  }
  return false;
}

static void begin() {
  hopper::begin();
  if (fibers::rank == 0) states = std::vector<State>(fibers::blocks_in_cluster);
}
static bool stuck() { return hopper::stuck() || work(); }
static void end() {
  for (const Order &o : mine().orders)
    if (o.what != Order::commit) return blame("a block ends while products are under way");
  if (!mine().coming.empty()) return blame("a block ends while a copy is coming");
  if (mine().columns) return blame("a block ends with tensor memory that it has not given back");
  hopper::end();
}

static const bool ready = [] {
  fibers::hooks = {begin, hopper::comes_back, stuck, end};
  return true;
}();
}  // namespace blackwell
