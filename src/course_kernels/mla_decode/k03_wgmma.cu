// MLA decode, kernel 3: two warpgroups share one answer, and hand scores to each other through shared memory.
//
// Contract  problem.py      Launcher  k03_wgmma.py      Instructions  ../cuda/hopper
// Idea      the answer of 64 heads is 64 x 512 float32: half of all registers of a multiprocessor, so there is one, and
//           no second to work on meanwhile. Each of two warpgroups keeps 256 of its columns, and scores every second
//           page. A page's weights lie in thread t of one warpgroup as thread t of the other wants them for its own
//           product: 64 bytes go through shared memory, and only the two warps that hold the same heads wait for each
//           other. So one weighs while the other multiplies. The largest scores so far go to and fro with the weights,
//           and answers are repaired only when they grew by much, as in attention's kernel 6
// Against   k02_split, where all warps multiply, then all weigh; and every sequence is cut alike
// Cost      both blocks that have a page's 128 heads ask for all of it, and one of them finds it in L2; as a cluster they
//           can ask for half each, but then each waits for the other. A block holds 64 rows of Q and two pages, 221 KB.
//           Each pair gets an equal share of all pages; where that cuts a sequence, two parts or more go to memory and a
//           second kernel adds them
// Limits    Hopper (sm_90a), 16-bit numbers, at most 128 heads. Of fewer than 64 in a block the other rows are zeros
// Source    Li & Liu 2025, A Deep-Dive Into the New Flash MLA Kernel (two warpgroups, one answer, two pages)
#include "ahead.cuh"
#include "hopper/tma.cuh"
#include "hopper/warpgroup.cuh"

#ifndef BLOCKS
#define BLOCKS 2  // of 64 heads, that read the same pages
#endif
// The ideas, each with its switch: so that what it brings can be measured.
#ifndef CLUSTER
#define CLUSTER 1  // BLOCKS: these bring their share of a page to each other; 1: each asks for all of it
#endif
#ifndef ONCE
#define ONCE 0  // whether L2 is told that a page is read once
#endif
#ifndef AHEAD
#define AHEAD 0  // whether the page after next comes to L2 while this one comes to the block
#endif
#ifndef FLOAT16
#define FLOAT16 0
#endif
#ifndef SLACK
#define SLACK 8  // the power of two by which a maximum may grow before the answer is repaired
#endif

#if FLOAT16
using Type = F16x16;
#else
using Type = Bf16x16;
#endif
using Number = unsigned short;  // 16 bits that nobody here looks into

constexpr int LATENT = 512, ROW = 576, PAGE = 64, ROWS = 64;  // ROWS: heads of a block, what one instruction multiplies
constexpr int THREADS = 3 * 128;
constexpr int HALF = LATENT / 2;
constexpr int PANELS = ROW / 64, OF_HALF = HALF / 64;  // a panel: 64 numbers of 64 rows; half of the values has four
constexpr unsigned PANEL = 64 * 128, TILE = PANELS * PANEL;
static_assert(CLUSTER == 1 || CLUSTER == BLOCKS, "all blocks of a page, or none");
constexpr int SHARE = PAGE / CLUSTER;  // rows of a page that a block asks for
constexpr int PRODUCER_REGISTERS = 40, CONSUMER_REGISTERS = 232;

// How the work is shared out, in pages. What a further part of a sequence costs, its rows of Q, an empty ring and its
// answer: a guess, since nothing of it was measured alone. And how much longer than an equal share the longest may be
// before sequences are cut.
constexpr int OF_PART = 3, UNEVEN = 6;

__device__ inline float infinity() { return __int_as_float(0x7f800000); }

struct Shared {
  char q[TILE];
  char page[2][TILE];      // pages of even and of odd place in their part
  uint4 weights[4][128];   // from thread to thread: four products of 16 tokens
  float2 tops[128];        // and the largest scores of its two rows
  float sums[2][2][ROWS];  // of a part: of even and of odd number; by warpgroup
  Barrier q_full, q_empty, summed;  // summed: of a part, by both warpgroups
  Barrier full[2][PANELS];
  Barrier empty[2][2];  // the left half of the values, and the right one with what is only key
  Barrier told[2][4];   // by the warps of the even pages, and back: their weights are there
};

static_assert(sizeof(Shared) <= 227 * 1024, "what a block of Hopper can have");

struct Sizes {
  int B, H, MOST, groups;
  float scale;         // times log2(e)
  const int *table;    // [B, MOST]
  const int *lengths;  // [B]
};

__device__ inline int length_of(const Sizes &sizes, int b) { return min(max(sizes.lengths[b], 0), sizes.MOST * PAGE); }
__device__ inline int pages_in(int length) { return (length + PAGE - 1) / PAGE; }

// --- shares -------------------------------------------------------------------------------------------------------

// Where a share begins and the one before it ends.
struct Cut {
  int b, page;
};

// All sequences lie side by side, each as long as its pages and OF_PART. The cut at a place: at a sequence's first
// page, or amid it if that is wanted and leaves no piece shorter than OF_PART. ends[b]: where the first b sequences end.
__device__ inline Cut cut_at(const int *ends, int B, int place, bool amid) {
  int from = 0, to = B;  // ends[from] <= place < ends[to], but for the end of all
  while (to - from > 1) {
    const int b = (from + to) / 2;
    (ends[b] <= place ? from : to) = b;
  }
  const int into = place - ends[from], left = ends[from + 1] - place;
  if (!amid) return {into > left ? from + 1 : from, 0};
  if (left > 0 && into <= OF_PART) return {from, 0};  // the end of all is no sequence's first page
  return left <= OF_PART ? Cut{from + 1, 0} : Cut{from, into - OF_PART};
}

// Where this group begins and ends, from the lengths; the same in all threads. In `ends` is room for B + 1 + 12.
__device__ inline void share_out(int *ends, const Sizes &sizes, int group, Cut &begin, Cut &end) {
  const int t = threadIdx.x, lane = t % 32, warp = t / 32;
  const int each = (sizes.B + THREADS - 1) / THREADS, first = min(t * each, sizes.B), last = min(first + each, sizes.B);
  int *of_warps = ends + sizes.B + 1;
  int own = 0;
  for (int b = first; b < last; b++) own += pages_in(length_of(sizes, b)) + OF_PART;
  int upto = own;  // of this thread and those before it
  for (int step = 1; step < 32; step *= 2) {
    const int before = __shfl_sync(0xffffffffu, upto, max(lane - step, 0));
    upto += lane >= step ? before : 0;
  }
  if (lane == 31) of_warps[warp] = upto;
  __syncthreads();
  for (int w = 0; w < warp; w++) upto += of_warps[w];
  int at = upto - own;
  for (int b = first; b < last; b++) {
    ends[b] = at;
    at += pages_in(length_of(sizes, b)) + OF_PART;
  }
  if (t == THREADS - 1) ends[sizes.B] = upto;
  __syncthreads();
  // No more shares than pages: each then has one at least where a sequence is cut, and none amid it is empty.
  const int all = ends[sizes.B], shares = min(all, sizes.groups), share = all / shares, rest = all % shares;
  auto cut = [&](int i, bool amid) {
    i = min(i, shares);
    return cut_at(ends, sizes.B, share * i + rest * i / shares, amid);
  };
  bool is_long = false;
  if (t < shares) {
    const int load = ends[cut(t + 1, false).b] - ends[cut(t, false).b];
    is_long = load > share + UNEVEN;
  }
  const bool amid = __syncthreads_or(is_long);
  begin = cut(group, amid);
  end = cut(group + 1, amid);
  // Said so that the compiler knows: products in a branch that may not be all threads' wait for each other.
  begin = {same_in_warp(begin.b), same_in_warp(begin.page)};
  end = {same_in_warp(end.b), same_in_warp(end.page)};
}

// Pages first to last - 1 of a sequence, which has `pages` of them.
struct Part {
  int length, pages, first, last;
  __device__ bool whole() const { return first == 0 && last == pages; }
};

// The parts of a share, one after the other; by one thread, or by whole warps, where the compiler is to know so.
template <bool WARPS, class Each>
__device__ inline void for_each_part(const Sizes &sizes, const Cut &begin, const Cut &end, Each each) {
  for (int b = begin.b; b < end.b || (b == end.b && end.page > 0); b++) {
    const int own = length_of(sizes, b), length = WARPS ? same_in_warp(own) : own, pages = pages_in(length);
    const Part part = {length, pages, b == begin.b ? begin.page : 0, b == end.b ? end.page : pages};
    if (part.first < part.last || pages == 0) each(b, part);
  }
}

// --- the producer -------------------------------------------------------------------------------------------------

__device__ inline void produce(Shared &shared, const TensorMap &q_map, const TensorMap &cache_map, const Sizes &sizes,
                               const Cut &begin, const Cut &end) {
  const int block = blockIdx.x % BLOCKS, first_row = CLUSTER > 1 ? block * SHARE : 0;
  const CachePolicy policy = evict_first();
  unsigned q_parity = 0, parities = 0;  // of the two pages: bits 0 and 1
  for_each_part<false>(sizes, begin, end, [&](int b, const Part &part) {
    if (part.pages == 0) return;
    const int *table = sizes.table + static_cast<long long>(b) * sizes.MOST;
    // Asked for a page ahead, or two: who asks for an address waits.
    auto page_at = [&](int i) { return i < part.last ? table[i] : 0; };
    int page = table[part.first], next = page_at(part.first + 1);
    // A fresh barrier counts as having turned once already: the first pass over the ring does not wait.
    wait(&shared.q_empty, q_parity ^ 1);
    q_parity ^= 1;
    arrive_and_expect_bytes(&shared.q_full, TILE);
    for (int p = 0; p < PANELS; p++)  // rows past the last head come as zeros
      load_tile(shared.q + p * PANEL, q_map, &shared.q_full, p * 64, block * ROWS, b);
    for (int i = part.first; i < part.last; i++) {
      const int side = (i - part.first) & 1, row = page * PAGE + first_row;
      const int after = page_at(i + 2);
      for (int p = 0; p < PANELS; p++) {
        if (p == 0 || p == OF_HALF) wait(&shared.empty[side][p / OF_HALF], (parities >> side & 1) ^ 1);
        Barrier *full = &shared.full[side][p];
        char *to = shared.page[side] + p * PANEL + first_row * 128;
        arrive_and_expect_bytes(full, PANEL);
        if (CLUSTER > 1 && ONCE) {
          load_tile_multicast(to, cache_map, full, (1 << CLUSTER) - 1, policy, p * 64, row);
        } else if (CLUSTER > 1) {
          load_tile_multicast(to, cache_map, full, (1 << CLUSTER) - 1, p * 64, row);
        } else if (ONCE) {
          load_tile(to, cache_map, full, policy, p * 64, row);
        } else {
          load_tile(to, cache_map, full, p * 64, row);
        }
      }
      for (int p = 0; p < PANELS && AHEAD && i + 2 < part.last; p++)
        tile_to_l2(cache_map, p * 64, after * PAGE + first_row);
      page = next, next = after;
      parities ^= 1 << side;
    }
  });
}

// --- a consumer ---------------------------------------------------------------------------------------------------

// What a thread knows of its two rows: of 16 rows of a warp, lane / 4 and eight below it.
struct Rows {
  float top[2];     // the scores that exponents count from: no weight is above 2**SLACK
  float sum[2];     // of the weights in this thread's columns of this warpgroup's pages
  float repair[2];  // what sums and answer so far are to be multiplied by
};

// One over the weight of a new maximum. Where both are -inf, NaN, of which fminf takes the other.
__device__ inline float lessened(float old_top, float top, float scale) {
  return power_of_2(fminf((old_top - top) * scale, 0.f));
}

// Minus infinity for the tokens from `there` on.
__device__ inline void mask(float (&s)[PAGE / 2], int there) {
#pragma unroll
  for (int i = 0; i < PAGE / 2; i++)
    if (i / 4 * 8 + threadIdx.x % 4 * 2 + i % 2 >= there) s[i] = -infinity();
}

// Scores to weights, in place; whether the answer so far is to be repaired, the same in a warp.
__device__ inline bool weigh(float (&s)[PAGE / 2], Rows &rows, float scale) {
  bool any = false;
#pragma unroll
  for (int half = 0; half < 2; half++) {
    float top = rows.top[half];
#pragma unroll
    for (int j = 0; j < PAGE / 8; j++) top = fmaxf(top, fmaxf(s[4 * j + 2 * half], s[4 * j + 2 * half + 1]));
    top = fmaxf(top, __shfl_xor_sync(0xffffffffu, top, 1));  // four threads share a row
    top = fmaxf(top, __shfl_xor_sync(0xffffffffu, top, 2));
    const float less = lessened(rows.top[half], top, scale);
    // The weights are rounded before they meet the values, and their sum is not. That shows where one weight is much of
    // its row's sum, unless it is exactly 1: so such a one becomes what the exponents count from. All rows of a warp.
    const bool heavy = (top > rows.top[half]) & ((less < 1.f / (1 << SLACK)) | (rows.sum[half] * less <= 1));
    const bool moves = __any_sync(0xffffffffu, heavy);
    any |= moves;
    rows.repair[half] = moves ? less : 1.f;
    rows.top[half] = moves ? top : rows.top[half];
    const float zero = rows.top[half] == -infinity() ? 0.f : rows.top[half] * scale;
    float sum = 0;
#pragma unroll
    for (int j = 0; j < PAGE / 8; j++) {
#pragma unroll
      for (int e = 0; e < 2; e++) {
        float &x = s[4 * j + 2 * half + e];
        x = power_of_2(fmaf(x, scale, -zero));
        sum += x;
      }
    }
    rows.sum[half] = rows.sum[half] * rows.repair[half] + sum;
  }
  return any;
}

// The other warpgroup has moved the tops: follow it.
__device__ inline bool follow(Rows &rows, float2 tops, float scale) {
  const float top[2] = {tops.x, tops.y};
  bool moved = false;
#pragma unroll
  for (int half = 0; half < 2; half++) {
    moved |= top[half] > rows.top[half];
    rows.repair[half] = lessened(rows.top[half], top[half], scale);
    rows.sum[half] *= rows.repair[half];
    rows.top[half] = top[half];
  }
  return __any_sync(0xffffffffu, moved);
}

__device__ inline void repair_answer(float (&o)[HALF / 2], const Rows &rows) {
#pragma unroll
  for (int i = 0; i < HALF / 2; i++) o[i] *= rows.repair[i / 2 % 2];
}

// Zeros for the tokens from `there` on, in half of a page's values: a weight of zero times the NaN that may lie there
// is NaN. By a warpgroup, which then has seen it all.
__device__ inline void clear(char *values, int there, int barrier) {
  const int pieces = (PAGE - there) * 8;  // of 16 bytes, in a panel
  for (int i = threadIdx.x % 128; i < OF_HALF * pieces; i += 128)
    *reinterpret_cast<uint4 *>(values + i / pieces * PANEL + there * 128 + i % pieces * 16) = uint4{0, 0, 0, 0};
  fence_async();
  named_barrier_wait(barrier, 128);
}

struct Answer {
  Number *O;        // [B, H, 512]
  float *parts;     // [2 * groups, H, 512]: of a group, a sequence that began before it, and one that goes on
  float *part_lse;  // [2 * groups, H]: powers of two
  int *range;       // [B, 2]: the first and the last group that have a part of it
};

// Four numbers, in one store.
__device__ inline void store_pairs(Number *to, unsigned first, unsigned second) {
  *reinterpret_cast<float2 *>(to) = make_float2(__uint_as_float(first), __uint_as_float(second));
}

// This thread's rows and columns, `first_column` and on, of a part that is done.
__device__ inline void store(const float (&o)[HALF / 2], const Rows &rows, const float (&sum)[2], const Answer &answer,
                             const Sizes &sizes, int b, const Part &part, int group, int first_head, int first_column) {
  const int lane = threadIdx.x % 32, c = lane % 4;
#pragma unroll
  for (int half = 0; half < 2; half++) {
    const int head = first_head + half * 8;
    const float by = sum[half] == 0 ? 0.f : 1 / sum[half];
    if (part.whole()) {
      Number *to = answer.O + (static_cast<long long>(b) * sizes.H + head) * LATENT + first_column;
#pragma unroll
      for (int j = 0; j < HALF / 8; j += 2) {
        // Of two times eight columns the even lanes store from the first and the odd ones from the second: four threads
        // then fill a sector of 32 bytes.
        const unsigned left = rounded_pair<Type>(o[4 * j + 2 * half] * by, o[4 * j + 2 * half + 1] * by);
        const unsigned right = rounded_pair<Type>(o[4 * j + 4 + 2 * half] * by, o[4 * j + 4 + 2 * half + 1] * by);
        const unsigned gets =
            __float_as_uint(__shfl_xor_sync(0xffffffffu, __uint_as_float(c % 2 ? left : right), 1));
        if (head < sizes.H) store_pairs(to + j * 8 + c % 2 * 8 + c / 2 * 4, c % 2 ? gets : left, c % 2 ? right : gets);
      }
    } else if (head < sizes.H) {
      const long long place = (2ll * group + (part.first == 0)) * sizes.H + head;
      float *to = answer.parts + place * LATENT + first_column + c * 2;
#pragma unroll
      for (int j = 0; j < HALF / 8; j++)
        *reinterpret_cast<float2 *>(to + j * 8) = make_float2(o[4 * j + 2 * half] * by, o[4 * j + 2 * half + 1] * by);
      if (first_column == 0 && c == 0) answer.part_lse[place] = rows.top[half] * sizes.scale + log2f(sum[half]);
    }
  }
}

// Columns SIDE * 256 and on of the answer, and the scores of the pages whose place in the part is even (0) or odd (1).
template <int SIDE>
__device__ inline void consume(Shared &shared, const Answer &answer, const Sizes &sizes, const Cut &begin,
                               const Cut &end, int group) {
  const int t = threadIdx.x % 128, lane = t % 32, warp = t / 32;
  const int block = blockIdx.x % BLOCKS, first_head = block * ROWS + warp * 16 + lane / 4;
  const int all = 1 + SIDE;  // the named barrier of this warpgroup
  const Descriptor q = k_major(address_in_shared(shared.q)), keys = k_major(address_in_shared(shared.page[SIDE]));
  unsigned q_parity = 0, parity = 0, part_parity = 0, told_parity = 0;
  float s[PAGE / 2], o[HALF / 2];
  unsigned weights[PAGE / 16][4], others[PAGE / 16][4];
  Rows rows = {};

  auto give_back = [&](int side, int half) {  // to all who bring a part of it; it was only read
    if (CLUSTER == 1) {
      if (lane == 0) arrive(&shared.empty[side][half]);
    } else {
      if (lane < CLUSTER) arrive_remote_after_reading(&shared.empty[side][half], lane);
    }
  };
  auto give_q_back = [&]() {
    if (lane == 0) arrive(&shared.q_empty);
  };
  // The scores of this warpgroup's next page, panel by panel as they come.
  auto score = [&](int p) {
    wait(&shared.full[SIDE][p], parity);
#pragma unroll
    for (int k = 0; k < 4; k++)
      products<PAGE, Type>(s, advance(q, p * PANEL + k * 32), advance(keys, p * PANEL + k * 32), p + k != 0);
  };
  auto score_left = [&]() {
    wgmma_fence(s);
#pragma unroll
    for (int p = 0; p < OF_HALF; p++) score(p);
    wgmma_commit();
  };
  auto score_right = [&]() {
#pragma unroll
    for (int p = OF_HALF; p < PANELS; p++) score(p);
    wgmma_commit();
    parity ^= 1;
  };
  // Weights times this warpgroup's half of a page's values.
  auto multiply = [&](const unsigned (&a)[PAGE / 16][4], int side) {
    const Descriptor values = mn_major(address_in_shared(shared.page[side] + SIDE * OF_HALF * PANEL), PANEL);
    wgmma_fence(o);
#pragma unroll
    for (int k = 0; k < PAGE / 16; k++) products<HALF, Type, Major::mn>(o, a[k], advance(values, k * 16 * 128));
    wgmma_commit();
  };
  auto tell = [&]() {
#pragma unroll
    for (int k = 0; k < PAGE / 16; k++) {
      operand<Type>(weights[k], s, k);
      shared.weights[k][t] = uint4{weights[k][0], weights[k][1], weights[k][2], weights[k][3]};
    }
    shared.tops[t] = make_float2(rows.top[0], rows.top[1]);
    arrive(&shared.told[SIDE][warp]);
  };
  // What the warp of the other warpgroup has told that has the same heads.
  auto hear = [&]() {
    wait(&shared.told[1 - SIDE][warp], told_parity);
    told_parity ^= 1;
#pragma unroll
    for (int k = 0; k < PAGE / 16; k++) {
      const uint4 x = shared.weights[k][t];
      others[k][0] = x.x, others[k][1] = x.y, others[k][2] = x.z, others[k][3] = x.w;
    }
    return follow(rows, shared.tops[t], sizes.scale);
  };

  for_each_part<true>(sizes, begin, end, [&](int b, const Part &part) {
    rows = {{-infinity(), -infinity()}, {0, 0}, {1, 1}};
#pragma unroll
    for (int i = 0; i < HALF / 2; i++) o[i] = 0;
    const int last = part.last;
    auto is_short = [&](int page) { return part.length < (page + 1) * PAGE; };  // the last page of all may be
    auto tidy = [&](int page, int side) {
      if (is_short(page)) clear(shared.page[side] + SIDE * OF_HALF * PANEL, part.length - page * PAGE, all);
    };
    auto weigh_page = [&](int page) {
      if (is_short(page)) mask(s, part.length - page * PAGE);
      return weigh(s, rows, sizes.scale);
    };
    if (part.pages > 0) {
      wait(&shared.q_full, q_parity);
      q_parity ^= 1;
      if (part.first + SIDE < last) {
        score_left();
        score_right();
        wgmma_wait<0>(s);
      }
      if (part.first + SIDE + 2 >= last) give_q_back();
    }
    for (int page = part.first; page < last; page += 2) {
      const bool has_odd = page + 1 < last, goes_on = page + SIDE + 2 < last;
      if constexpr (SIDE == 0) {
        const bool moved = weigh_page(page);
        tell();
        tidy(page, 0);
        if (moved) repair_answer(o, rows);
        multiply(weights, 0);
        wgmma_wait<0>(o);
        give_back(0, 0);
        if (has_odd) {
          const bool they_moved = hear();
          tidy(page + 1, 1);
          if (they_moved) repair_answer(o, rows);
          multiply(others, 1);
        }
        if (goes_on) {
          score_left();
          wgmma_wait<1>(o);
          give_back(1, 0);
          score_right();
          wgmma_wait<0>(s);
          if (page + 4 >= last) give_q_back();
        } else {
          wgmma_wait<0>(o);
          if (has_odd) give_back(1, 0);
        }
      } else {
        const bool they_moved = hear();
        tidy(page, 0);
        if (they_moved) repair_answer(o, rows);
        multiply(others, 0);
        if (has_odd) {
          const bool moved = weigh_page(page + 1);  // while the product runs
          tell();
          wgmma_wait<0>(o);
          give_back(0, 1);
          tidy(page + 1, 1);
          if (moved) repair_answer(o, rows);
          multiply(weights, 1);
          wgmma_wait<0>(o);
          give_back(1, 1);
        } else {
          wgmma_wait<0>(o);
          give_back(0, 1);
        }
        if (goes_on) {
          score_left();
          score_right();
          wgmma_wait<0>(s);
          if (page + 5 >= last) give_q_back();
        }
      }
    }

    float sum[2];
#pragma unroll
    for (int half = 0; half < 2; half++) {
      sum[half] = rows.sum[half];
      sum[half] += __shfl_xor_sync(0xffffffffu, sum[half], 1);
      sum[half] += __shfl_xor_sync(0xffffffffu, sum[half], 2);
      if (lane % 4 == 0) shared.sums[part_parity][SIDE][warp * 16 + lane / 4 + half * 8] = sum[half];
    }
    arrive(&shared.summed);
    wait(&shared.summed, part_parity);
#pragma unroll
    for (int half = 0; half < 2; half++)
      sum[half] += shared.sums[part_parity][1 - SIDE][warp * 16 + lane / 4 + half * 8];
    part_parity ^= 1;
    if (threadIdx.x == 128 && block == 0) {
      if (part.first == 0) answer.range[2 * b] = group;
      if (part.last == part.pages) answer.range[2 * b + 1] = group;
    }
    store(o, rows, sum, answer, sizes, b, part, group, first_head, SIDE * HALF);
  });
}

// --- all ----------------------------------------------------------------------------------------------------------

// grid: BLOCKS times the groups      block: THREADS      dynamic shared memory: sizeof(Shared)
extern "C" __global__ __launch_bounds__(THREADS, 1) void mla_decode_wgmma(
    const __grid_constant__ TensorMap q_map,      // [B, H, 576], box 1 x 64 x 64
    const __grid_constant__ TensorMap cache_map,  // [PAGES * 64, 576], box SHARE x 64
    const int *table, const int *lengths,
    unsigned short *O, float *parts, float *part_lse, int *range,  // see Answer
    int B, int H, int MOST, float scale) {
  extern __shared__ __align__(1024) char memory[];
  Shared &shared = *reinterpret_cast<Shared *>(memory);
  const int group = blockIdx.x / BLOCKS;
  const Sizes sizes = {B, H, MOST, static_cast<int>(gridDim.x) / BLOCKS, scale, table, lengths};
  const Answer answer = {O, parts, part_lse, range};
  if (threadIdx.x == 0) {
    prefetch(q_map);
    prefetch(cache_map);
    barrier_init(&shared.q_full, 1);
    barrier_init(&shared.q_empty, 8);  // each warp that multiplies
    barrier_init(&shared.summed, 256);
    for (int side = 0; side < 2; side++) {
      for (int p = 0; p < PANELS; p++) barrier_init(&shared.full[side][p], 1);
      for (int half = 0; half < 2; half++) barrier_init(&shared.empty[side][half], 4 * CLUSTER);  // of one warpgroup
      // Each lane for itself: what one lane says for all who wrote, racecheck does not see.
      for (int warp = 0; warp < 4; warp++) barrier_init(&shared.told[side][warp], 32);
    }
    fence_barrier_init();
  }
  let_next_grid_begin();
  Cut begin, end;
  share_out(reinterpret_cast<int *>(shared.page[0]), sizes, group, begin, end);
  fence_async();  // threads wrote where the copy engine writes next
  __syncthreads();
  if (CLUSTER > 1) {
    cluster_arrive();
    cluster_wait();
  }
  const int warpgroup = same_in_warp(threadIdx.x / 128);
  if (warpgroup == 0) {
    registers_down<PRODUCER_REGISTERS>();
    if (same_in_warp(threadIdx.x / 32) == 0 && elect_one()) produce(shared, q_map, cache_map, sizes, begin, end);
  } else {
    registers_up<CONSUMER_REGISTERS>();
    if (warpgroup == 1) consume<0>(shared, answer, sizes, begin, end, group);
    else consume<1>(shared, answer, sizes, begin, end, group);
  }
  if (CLUSTER > 1) {  // nobody's shared memory goes while another one still arrives there
    __syncwarp();
    cluster_arrive();
    cluster_wait();
  }
}

// A warp adds the parts of one head, of 128 * PIECES columns: a lane has four neighbours of each piece.
template <int PIECES>
__device__ inline void add_parts_of(const float *parts, const float *part_lse, Number *O, int first, int last, int b, int H,
                                    int head, int first_piece) {
  constexpr int AT_A_TIME = 16 / PIECES;  // parts on their way
  const int lane = threadIdx.x % 32;
  auto place_of = [&](int group) { return (2ll * group + (group == first)) * H + head; };
  // A lane fetches the weight of every 32nd part.
  float top = -infinity(), total = 0;
  for (int group = first + lane; group <= last; group += 32) top = fmaxf(top, part_lse[place_of(group)]);
  for (int step = 16; step; step /= 2) top = fmaxf(top, __shfl_xor_sync(0xffffffffu, top, step));
  float4 sum[PIECES] = {};
  for (int begin = first; begin <= last; begin += 32) {
    const float mine = begin + lane <= last ? power_of_2(part_lse[place_of(begin + lane)] - top) : 0;
#pragma unroll AT_A_TIME
    for (int group = begin; group <= min(last, begin + 31); group++) {
      const float weight = __shfl_sync(0xffffffffu, mine, group - begin);
      total += weight;
#pragma unroll
      for (int i = 0; i < PIECES; i++) {
        const float4 x = reinterpret_cast<const float4 *>(parts + place_of(group) * LATENT)[(first_piece + i) * 32 + lane];
        sum[i].x += weight * x.x, sum[i].y += weight * x.y, sum[i].z += weight * x.z, sum[i].w += weight * x.w;
      }
    }
  }
  const float by = 1 / total;
  Number *to = O + (static_cast<long long>(b) * H + head) * LATENT;
#pragma unroll
  for (int i = 0; i < PIECES; i++)
    store_pairs(to + ((first_piece + i) * 32 + lane) * 4, rounded_pair<Type>(sum[i].x * by, sum[i].y * by),
                rounded_pair<Type>(sum[i].z * by, sum[i].w * by));
}

// The parts of the sequences that were cut; a warp for a head, or, where heads are few, four warps for its four pieces.
// grid: (blocks that share the heads, B, 1 or 4)      block: 256
extern "C" __global__ __launch_bounds__(256) void mla_decode_add_parts(
    const float *parts, const float *part_lse, const int *range, unsigned short *O, int H) {
  wait_for_last_grid();
  const int b = blockIdx.y, first = range[2 * b], last = range[2 * b + 1];
  if (first == last) return;  // answered already
  const int head = blockIdx.x * 8 + threadIdx.x / 32;
  if (head >= H) return;
  if (gridDim.z == 1) add_parts_of<LATENT / 128>(parts, part_lse, O, first, last, b, H, head, 0);
  else add_parts_of<1>(parts, part_lse, O, first, last, b, H, head, blockIdx.z);
}
