// Attention, kernel 6: the roles of kernel 4 in CUDA C++, with every wait, register and byte of shared memory ours.
//
// Contract  problem.py      Launcher  k06_wgmma.py      Instructions  ../cuda/hopper
// Idea      one thread keeps a ring of tiles of K and V full; two or three warpgroups multiply, each while its own last
//           product still runs. A thread sums its own weights, and a row's threads meet once, at its end. The answer so
//           far is repaired only when a maximum grew by more than SLACK powers of two, or when its weight is much of the
//           row's sum; a share of the exponentials is made by multiplications, where the unit for exponentials is what
//           everybody waits for. Causal blocks are of unequal length: who is done asks for the next
// Against   k04_specialised, the same roles in Gluon: its warpgroups meet for every sum and every tile they give back,
//           and repair in every step
// Cost      a block reads K and V once for CONSUMERS * 64 rows of Q
// Limits    Hopper (sm_90a) only, 16-bit numbers, rows of whole panels of 64 numbers in shared memory
// Source    Shah et al. 2024, arXiv:2407.08608, sections 3.1 and 3.2

#include "hopper/tma.cuh"
#include "hopper/warpgroup.cuh"

// What the launcher may ask for. HEAD: numbers of a row in shared memory. HEAD_SIZE: of these, what a row has.
#ifndef HEAD
#define HEAD 128
#endif
#ifndef HEAD_SIZE
#define HEAD_SIZE HEAD
#endif
#ifndef BLOCK_N
#define BLOCK_N 128  // keys of one step
#endif
#ifndef STAGES
#define STAGES 2  // tiles of K, and of V, in shared memory at once
#endif
#ifndef CONSUMERS
#define CONSUMERS 2  // warpgroups that multiply, two to four
#endif
#ifndef FLOAT16
#define FLOAT16 0
#endif
#ifndef CAUSAL
#define CAUSAL 0  // a row sees keys up to its own place, counted from the end
#endif
#ifndef WINDOW
#define WINDOW 0  // a row sees `left` keys before its own place and `right` behind it
#endif
#ifndef PACKED
#define PACKED 0  // sequences of different lengths lie one behind the other
#endif
// The ideas, each with its switch: so that what it brings can be measured.
#ifndef OVERLAP
#define OVERLAP 1  // the product with V of one step runs beside the softmax of the next
#endif
#ifndef TURNS
#define TURNS 1  // warpgroups hand the tensor cores to each other
#endif
#ifndef SLACK
#define SLACK 8  // the power of two by which a maximum may grow before the answer is repaired; 0: repaired always
#endif
#ifndef BY_HAND
#define BY_HAND 0  // of 16 exponentials, how many are made by multiplications
#endif
#ifndef ORDER
#define ORDER 1  // of causal blocks: the longest first, heads together whose K and V fit in L2; else as they are numbered
#endif
#ifndef ASKS
#define ASKS 0  // a block that is done asks a counter for its next work; else each has its own from the beginning
#endif
#ifndef CLUSTER
#define CLUSTER 1  // blocks of neighbouring rows, each of which brings its share of a tile of K or V to all of them
#endif
#ifndef OWN_PLACE
#define OWN_PLACE 1  // whether the answer has a place of its own in shared memory, else that of Q
#endif

#if FLOAT16
using Type = F16x16;
#else
using Type = Bf16x16;
#endif
using Half = unsigned short;  // 16 bits that nobody here looks into

constexpr int ROWS = 64;  // of a warpgroup: what one instruction multiplies
constexpr int BLOCK_M = CONSUMERS * ROWS;
constexpr int THREADS = (CONSUMERS + 1) * 128;
constexpr int PANELS = HEAD / 64;  // a tile lies in panels of 64 numbers, 128 bytes: what the swizzle takes
constexpr unsigned Q_PANEL = ROWS * 128, KV_PANEL = BLOCK_N * 128;
constexpr int SHARE = BLOCK_N / CLUSTER;  // keys of a tile that a block brings
static_assert(SHARE % 8 == 0 && !(CLUSTER > 1 && PACKED), "shares of whole swizzles, and rows of one sequence");
static_assert(!(CLUSTER > 1 && ASKS), "one block asks for itself");
constexpr unsigned Q_BYTES = PANELS * Q_PANEL, KV_BYTES = PANELS * KV_PANEL;
// Registers, in eights. A block may have 65536 and gets as many for every thread; whoever asks for more than the others
// gave back waits for ever. The producer computes addresses only.
constexpr int AT_FIRST = 65536 / THREADS / 8 * 8;
constexpr int PRODUCER_REGISTERS = CONSUMERS == 2 ? 24 : 32;
constexpr int CONSUMER_REGISTERS = (AT_FIRST * (CONSUMERS + 1) - PRODUCER_REGISTERS) / CONSUMERS / 8 * 8;

__device__ inline float infinity() { return __int_as_float(0x7f800000); }

struct Shared {
  char q[CONSUMERS][Q_BYTES];
  char o[OWN_PLACE ? CONSUMERS : 1][OWN_PLACE ? Q_BYTES : 1024];
  char k[STAGES][KV_BYTES];
  char v[STAGES][KV_BYTES];
  Barrier q_full[CONSUMERS], q_empty[CONSUMERS];
  Barrier k_full[STAGES], k_empty[STAGES], v_full[STAGES], v_empty[STAGES];
  int number[CONSUMERS];  // ASKS: of the work, told with its rows of Q
};

// Where in a ring we are. The parity is that of the phase which fills this place.
struct Ring {
  int stage = 0;
  unsigned parity = 0;
  __device__ void next() {
    if (++stage == STAGES) {
      stage = 0;
      parity ^= 1;
    }
  }
};

// Sizes and places, the same for all blocks. Strides in elements.
struct Sizes {
  int B, H, group;            // batches, heads of Q, heads of Q for one of K and V
  int Nq, Nk;                 // rows, keys; PACKED: of the longest sequence
  int left, right;            // WINDOW
  int heads_at_once;          // CAUSAL: heads whose K and V stay in L2 together
  float scale;                // 1 / sqrt(D), times log2(e)
  long long o_row, o_head, o_batch, lse_head, lse_batch;
  const int *q_begins, *k_begins;  // PACKED: B + 1 places each, the last is where all end
  unsigned *asked;                 // ASKS: how often; zero before and after
};

// How many blocks of rows a head has; with clusters, how many of those.
__device__ inline int clusters_of(const Sizes &sizes) {
  constexpr int ROWS_OF_ALL = CLUSTER * BLOCK_M;
  return (sizes.Nq + ROWS_OF_ALL - 1) / ROWS_OF_ALL;
}

// One block of rows of one head, and the tiles of keys that it meets, from the last to the first. The blocks of a cluster
// meet the same tiles.
struct Work {
  int batch, head, first_row, rows, keys, q_begin, k_begin;
  int begin, end;  // tiles of keys
  int sees;        // row r sees keys up to r + sees; WINDOW: from r + sees - left - right on

  // False where there is nothing at this number.
  __device__ bool find(const Sizes &sizes, int number) {
    const int blocks = clusters_of(sizes);
    int block;
    if (CAUSAL && ORDER) {
      // The longest rows first, of as many heads as L2 holds.
      const int all = sizes.B * sizes.H, of_group = sizes.heads_at_once * blocks;
      const int first = number / of_group * sizes.heads_at_once, heads = min(sizes.heads_at_once, all - first);
      const int place = number % of_group;
      block = blocks - 1 - place / heads;
      head = first + place % heads;
    } else {
      block = number % blocks;
      head = number / blocks;
    }
    batch = head / sizes.H;
    head = head % sizes.H;
    // The last causal rows see all keys, the first hardly any: where all blocks together have whole warpgroups to spare,
    // the first block has them, in front of row 0. Of packed sequences another one lies there.
    const int spare = CAUSAL && !PACKED ? (blocks * CLUSTER * BLOCK_M - sizes.Nq) / ROWS * ROWS : 0;
    const int first_of_all = block * CLUSTER * BLOCK_M - spare, last_of_all = first_of_all + CLUSTER * BLOCK_M - 1;
    first_row = first_of_all + (CLUSTER > 1 ? cluster_rank() * BLOCK_M : 0);
    q_begin = k_begin = 0;
    rows = sizes.Nq;
    keys = sizes.Nk;
    if (PACKED) {
      q_begin = sizes.q_begins[batch];
      k_begin = sizes.k_begins[batch];
      rows = sizes.q_begins[batch + 1] - q_begin;
      keys = sizes.k_begins[batch + 1] - k_begin;
      if (first_row >= rows) return false;
    }
    sees = keys - rows + (WINDOW ? sizes.right : 0);
    const int end_key = CAUSAL || WINDOW ? min(keys, last_of_all + sees + 1) : keys;
    const int first_key = WINDOW ? max(0, first_of_all + sees - sizes.left - sizes.right) : 0;
    begin = first_key / BLOCK_N;
    end = end_key > first_key ? (end_key + BLOCK_N - 1) / BLOCK_N : begin;
    return true;
  }
};

__device__ inline int all_work(const Sizes &sizes) { return clusters_of(sizes) * sizes.H * sizes.B; }

// Which work is a block's in a round, where it is not asked for: to and fro, so that who got the longest gets the shortest
// next. From the number of all works on there is none.
__device__ inline int number_of(int round) {
  const int all = gridDim.x / CLUSTER, mine = blockIdx.x / CLUSTER;
  return round * all + (CAUSAL && ORDER && round % 2 ? all - 1 - mine : mine);
}

// --- the producer -----------------------------------------------------------

// A tile's panels, rows from `row` on.
__device__ inline void fetch(char *to, unsigned panel_bytes, const TensorMap &map, Barrier *full, int row, int head,
                             int batch) {
  arrive_and_expect_bytes(full, PANELS * panel_bytes);
#pragma unroll
  for (int p = 0; p < PANELS; p++) load_tile(to + p * panel_bytes, map, full, p * 64, row, head, batch);
}

// The same of K or V, where each block of a cluster brings its share to all.
__device__ inline void fetch_share(char *to, const TensorMap &map, Barrier *full, int row, int head, int batch) {
  const int rank = CLUSTER > 1 ? cluster_rank() : 0;
  arrive_and_expect_bytes(full, KV_BYTES);
#pragma unroll
  for (int p = 0; p < PANELS; p++) {
    char *share = to + p * KV_PANEL + rank * SHARE * 128;
    if (CLUSTER > 1) {
      load_tile_multicast(share, map, full, (1 << CLUSTER) - 1, p * 64, row + rank * SHARE, head, batch);
    } else {
      load_tile(share, map, full, p * 64, row, head, batch);
    }
  }
}

__device__ inline void produce(Shared &shared, const TensorMap &q_map, const TensorMap &k_map, const TensorMap &v_map,
                               const Sizes &sizes) {
  Ring k, v;
  unsigned q_parity = 0;
  const int all = all_work(sizes);
  // To a warpgroup, once it has given back what it had.
  auto tell = [&](int w, int number) {
    wait(&shared.q_empty[w], q_parity ^ 1);
    if (ASKS) shared.number[w] = number;
  };
  // A number without rows: nothing to do, or no more of it. Where each block has its own, nobody need be told.
  auto tell_all = [&](int number) {
    for (int w = 0; w < (ASKS ? CONSUMERS : 0); w++) {
      tell(w, number);
      arrive(&shared.q_full[w]);
    }
    if (ASKS) q_parity ^= 1;
  };
  int next;
  for (int number = number_of(0), round = 1; number < all; number = next, round++) {
    // Asked for long before it is needed. There are as many questions as works, and the last one makes it zero again.
    next = ASKS ? static_cast<int>(gridDim.x + atomicInc(sizes.asked, all - 1)) : number_of(round);
    Work work;
    if (!work.find(sizes, number) || work.begin >= work.end) {
      tell_all(number);
      continue;
    }
    const int kv_head = work.head / sizes.group, q_batch = PACKED ? 0 : work.batch;
    auto fetch_k = [&](int tile) {
      // A fresh barrier counts as having turned once already: the first pass over the ring does not wait.
      wait(&shared.k_empty[k.stage], k.parity ^ 1);
      fetch_share(shared.k[k.stage], k_map, &shared.k_full[k.stage], work.k_begin + tile * BLOCK_N, kv_head, q_batch);
      k.next();
    };
    auto fetch_v = [&](int tile) {
      wait(&shared.v_empty[v.stage], v.parity ^ 1);
      fetch_share(shared.v[v.stage], v_map, &shared.v_full[v.stage], work.k_begin + tile * BLOCK_N, kv_head, q_batch);
      v.next();
    };
    for (int w = 0; w < CONSUMERS; w++) {
      tell(w, number);
      // A warpgroup in front of row 0 gets other rows, which it does not look at: no box begins before its tensor.
      fetch(shared.q[w], Q_PANEL, q_map, &shared.q_full[w], work.q_begin + max(work.first_row + w * ROWS, 0), work.head,
            q_batch);
      if (w == 0) fetch_k(work.end - 1);  // what the first warpgroup begins with
    }
    q_parity ^= 1;
    // In the order in which they are used: with OVERLAP, K of a tile and then V of the one before it.
    if (!OVERLAP) fetch_v(work.end - 1);
    for (int tile = work.end - 2; tile >= work.begin; tile--) {
      fetch_k(tile);
      fetch_v(OVERLAP ? tile + 1 : tile);
    }
    if (OVERLAP) fetch_v(work.begin);
  }
  tell_all(all);
}

// --- a consumer -------------------------------------------------------------

// 2 to the power of x, made of multiplications: the whole part goes into the exponent, and a polynomial of degree 3 makes
// the rest, to within 8e-5. The weights are rounded to 8 or 11 bits next.
__device__ inline float power_by_hand(float x) {
  x = fmaxf(x, -126.f);
  const float magic = 12582912.f;  // 1.5 * 2^23: below it, whole numbers are one apart
  const float whole = x + magic;   // the nearest one, in the low bits
  const float rest = x - (whole - magic);
  float y = fmaf(0.05517167f, rest, 0.24261113f);
  y = fmaf(y, rest, 0.69326097f);
  y = fmaf(y, rest, 0.99992806f);
  return __int_as_float(__float_as_int(y) + (__float_as_int(whole) << 23));
}

// What a thread knows of its two rows: of 16 rows of a warp, lane / 4 and eight below it.
struct Rows {
  float top[2];  // the scores that exponents count from: no weight is above 2**SLACK
  float sum[2];  // of the weights in this thread's columns
};

// How many of a thread's columns of a tile, 0, 1, 8, 9, 16 …, lie before a column.
__device__ inline int columns_before(int column) {
  column = min(max(column, 0), BLOCK_N);
  return column / 8 * 2 + min(column % 8, 2);
}

// Minus infinity where a row does not see a key of the tile. What it sees is a word or two of bits, so that a look at a
// bit is all that a score needs.
__device__ inline void mask(float (&s)[BLOCK_N / 2], const Work &work, const Sizes &sizes, int row, int tile) {
  const int column = tile * BLOCK_N + threadIdx.x % 4 * 2;
#pragma unroll
  for (int half = 0; half < 2; half++) {
    const int end = CAUSAL || WINDOW ? min(work.keys, row + half * 8 + work.sees + 1) : work.keys;
    const int begin = WINDOW ? row + half * 8 + work.sees - sizes.left - sizes.right : 0;
    const int to = columns_before(end - column), from = WINDOW ? columns_before(begin - column) : 0;
#pragma unroll
    for (int word = 0; word < BLOCK_N / 4; word += 32) {
      unsigned bits = to <= word ? 0 : 0xffffffffu >> max(32 + word - to, 0);
      if (WINDOW) bits &= from <= word ? 0xffffffffu : from >= word + 32 ? 0 : 0xffffffffu << (from - word);
#pragma unroll
      for (int i = word; i < min(word + 32, BLOCK_N / 4); i++) {
        float &x = s[4 * (i / 2) + 2 * half + i % 2];
        x = bits >> (i - word) & 1 ? x : -infinity();
      }
    }
  }
}

// Scores to weights, in place. `repair` is what the answer so far must be multiplied by; false if that is 1 in the whole
// warp.
__device__ inline bool softmax(float (&s)[BLOCK_N / 2], Rows &rows, float (&repair)[2], float scale) {
  bool any = false;
#pragma unroll
  for (int half = 0; half < 2; half++) {
    float top = rows.top[half];
#pragma unroll
    for (int j = 0; j < BLOCK_N / 8; j++) top = fmaxf(top, fmaxf(s[4 * j + 2 * half], s[4 * j + 2 * half + 1]));
    top = fmaxf(top, __shfl_xor_sync(0xffffffffu, top, 1));  // four threads share a row
    top = fmaxf(top, __shfl_xor_sync(0xffffffffu, top, 2));
    // One over the weight of the new maximum. Where both are -inf, NaN, of which fminf takes the other.
    const float less = power_of_2(fminf((rows.top[half] - top) * scale, 0.f));
    // The weights are rounded before they meet V, and their sum is not. That shows where one weight is much of its row's
    // sum, unless it is exactly 1: so such a one becomes what the exponents count from. All rows of a warp or none.
    // & and not &&: && would branch, and the compiler moves nothing across a branch.
    const bool heavy = (top > rows.top[half]) & ((less < 1.f / (1 << SLACK)) | (rows.sum[half] * less <= 1));
    const bool moves = SLACK == 0 || __any_sync(0xffffffffu, heavy);
    any |= moves;
    repair[half] = moves ? less : 1.f;
    rows.top[half] = moves ? top : rows.top[half];
    // A row that has seen no key yet: all of its weights are 2**-inf.
    const float zero = rows.top[half] == -infinity() ? 0.f : rows.top[half] * scale;
    float sum = 0;
#pragma unroll
    for (int j = 0; j < BLOCK_N / 8; j++) {
#pragma unroll
      for (int e = 0; e < 2; e++) {
        float &x = s[4 * j + 2 * half + e];
        const float power = fmaf(x, scale, -zero);
        x = (j * 2 + e) % 16 < BY_HAND ? power_by_hand(power) : power_of_2(power);
        sum += x;
      }
    }
    rows.sum[half] = rows.sum[half] * repair[half] + sum;
  }
  return any;
}

__device__ inline void repair_answer(float (&o)[HEAD / 2], const float (&repair)[2]) {
#pragma unroll
  for (int j = 0; j < HEAD / 8; j++) {
#pragma unroll
    for (int e = 0; e < 4; e++) o[4 * j + e] *= repair[e / 2];
  }
}

__device__ inline void consume(Shared &shared, const TensorMap &o_map, Half *answer, float *lse, const Sizes &sizes,
                               int w) {
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32 % 4;
  const int all = all_work(sizes);
  const Descriptor q = k_major(address_in_shared(shared.q[w]));
  Ring k, v;
  unsigned q_parity = 0;
  float s[BLOCK_N / 2], o[HEAD / 2];
  unsigned weights[BLOCK_N / 16][4];
  if (TURNS && w == CONSUMERS - 1) named_barrier_arrive(1, 256);  // the first turn is the first warpgroup's

  auto multiply_keys = [&]() {
    const Descriptor keys = k_major(address_in_shared(shared.k[k.stage]));
#pragma unroll
    for (int i = 0; i < HEAD_SIZE / 16; i++) {
      products<BLOCK_N, Type>(s, advance(q, i / 4 * Q_PANEL + i % 4 * 32), advance(keys, i / 4 * KV_PANEL + i % 4 * 32),
                              i != 0);
    }
    wgmma_commit();
  };
  auto multiply_values = [&](bool add) {
    const Descriptor values = mn_major(address_in_shared(shared.v[v.stage]), KV_PANEL);
#pragma unroll
    for (int i = 0; i < BLOCK_N / 16; i++) {
      products<HEAD, Type, Major::mn>(o, weights[i], advance(values, i * 16 * 128), i != 0 || add);
    }
    wgmma_commit();
  };
  auto give_back = [&](Barrier *empty) {
    __syncwarp();  // all 32 have read the number, and one says so
    if (lane == 0) arrive(empty);
  };
  // To all who bring a part of it. It was only read, so nothing need be seen by them.
  auto give_back_to_all = [&](Barrier *empty) {
    if (CLUSTER == 1) {
      if (lane == 0) arrive(empty);
    } else {
      if (lane < CLUSTER) arrive_remote_after_reading(empty, lane);
    }
  };
  auto make_operand = [&]() {
#pragma unroll
    for (int i = 0; i < BLOCK_N / 16; i++) operand<Type>(weights[i], s, i);
  };
  auto my_turn = [&]() {
    if (TURNS) named_barrier_wait(1 + w, 256);
  };
  auto your_turn = [&]() {
    if (TURNS) named_barrier_arrive(1 + (w + 1) % CONSUMERS, 256);
  };

  for (int round = 0;; round++) {
    if (ASKS) wait(&shared.q_full[w], q_parity);
    // Read by the lane that gives its place back, and by no other.
    const int number = ASKS ? same_in_warp(lane == 0 ? shared.number[w] : 0) : number_of(round);
    if (number >= all) break;
    Work work;
    const bool found = work.find(sizes, number), keys = found && work.begin < work.end;
    if (!ASKS && keys) wait(&shared.q_full[w], q_parity);
    if (ASKS || keys) q_parity ^= 1;
    if (ASKS && !keys) give_back(&shared.q_empty[w]);
    if (!found) continue;
    const int first_row = work.first_row + w * ROWS, row = first_row + warp * 16 + lane / 4;
    Rows rows = {{-infinity(), -infinity()}, {0, 0}};
    float repair[2];

    // Tiles that none of our rows sees come first, and all of them where the block has rows to spare only: they are given
    // back as they come, and so are our turns.
    const bool spare = first_row >= work.rows || first_row + ROWS <= 0;
    const int sees_to = CAUSAL || WINDOW ? min(work.keys, first_row + ROWS + work.sees) : work.keys;
    const int end = !keys || spare ? work.begin : min(work.end, max(work.begin, (max(sees_to, 0) + BLOCK_N - 1) / BLOCK_N));
    // From clear_from to clear_to every row of ours sees every key.
    const int all_see_to = CAUSAL || WINDOW ? min(work.keys, first_row + work.sees + 1) : work.keys;
    const int clear_to = max(work.begin, max(all_see_to, 0) / BLOCK_N);
    const int all_see_from = WINDOW ? first_row + ROWS - 1 + work.sees - sizes.left - sizes.right : 0;
    const int clear_from = max(work.begin, (max(all_see_from, 0) + BLOCK_N - 1) / BLOCK_N);
    for (int tile = work.end - 1; tile >= end; tile--) {
      wait(&shared.k_full[k.stage], k.parity);
      give_back_to_all(&shared.k_empty[k.stage]);
      k.next();
      if (!OVERLAP || tile < work.end - 1) {
        my_turn();
        your_turn();
      }
      wait(&shared.v_full[v.stage], v.parity);
      give_back_to_all(&shared.v_empty[v.stage]);
      v.next();
    }
    if (work.begin < end) {
      if (OVERLAP && end < work.end) {
        my_turn();
        your_turn();
      }
      int tile = end - 1;
      // One step: the scores of a tile, and the product of weights and values; with OVERLAP those of the tile before.
      auto step = [&](bool masked, bool first) {
        wait(&shared.k_full[k.stage], k.parity);
        if (!(OVERLAP && first)) my_turn();
        wgmma_fence(s);
        multiply_keys();
        if (OVERLAP && !first) {
          wait(&shared.v_full[v.stage], v.parity);
          wgmma_fence(o);
          multiply_values(tile != end - 2);
          your_turn();
          wgmma_wait<1>(s);
        } else {
          if (!OVERLAP) your_turn();
          wgmma_wait<0>(s);
        }
        give_back_to_all(&shared.k_empty[k.stage]);
        k.next();
        if (masked) mask(s, work, sizes, row, tile);
        const bool repairs = softmax(s, rows, repair, sizes.scale);
        if (OVERLAP && !first) {
          // First the softmax, then the wait: the assembler would do it the other way round, and nothing would overlap.
          // This is a branch that hangs on all exponentials, since it looks at their sums. No sum is below zero, and the
          // phase is long over: it costs a look.
          wait(&shared.q_full[w], q_parity ^ 1 ^ (rows.sum[0] + rows.sum[1] < 0));
          wgmma_wait<0>(o);
          give_back_to_all(&shared.v_empty[v.stage]);
          v.next();
        }
        make_operand();
        // With SLACK, hardly ever after the first tiles: a look costs less than HEAD / 2 multiplications.
        if (!first && repairs) repair_answer(o, repair);
        if (!OVERLAP) {
          wait(&shared.v_full[v.stage], v.parity);
          wgmma_fence(o);
          multiply_values(!first);
          wgmma_wait<0>(o);
          give_back_to_all(&shared.v_empty[v.stage]);
          v.next();
        }
      };
      step(true, true);
      for (tile--; tile >= clear_to; tile--) step(true, false);
      for (; tile >= clear_from; tile--) step(false, false);
      if (WINDOW)
        for (; tile >= work.begin; tile--) step(true, false);
      if (OWN_PLACE) give_back(&shared.q_empty[w]);
      if (OVERLAP) {
        wait(&shared.v_full[v.stage], v.parity);
        wgmma_fence(o);
        multiply_values(end - work.begin > 1);
        wgmma_wait<0>(o);
        give_back_to_all(&shared.v_empty[v.stage]);
        v.next();
      }
    } else {
      if (keys && OWN_PLACE) give_back(&shared.q_empty[w]);
#pragma unroll
      for (int i = 0; i < HEAD / 2; i++) o[i] = 0;
    }

#pragma unroll
    for (int half = 0; half < 2; half++) {
      float sum = rows.sum[half];
      sum += __shfl_xor_sync(0xffffffffu, sum, 1);
      sum += __shfl_xor_sync(0xffffffffu, sum, 2);
      // A row that sees no key is all zeros, and the logarithm of its sum is that of nothing.
      const bool sees = rows.top[half] > -infinity();
      repair[half] = sees ? 1 / sum : 0.f;
      const int r = row + half * 8;
      if (lane % 4 == 0 && r >= 0 && r < work.rows) {
        // top counts powers of two times the scale; the log-sum-exp is a natural logarithm.
        lse[work.batch * sizes.lse_batch + work.head * sizes.lse_head + work.q_begin + r] =
            sees ? (rows.top[half] * sizes.scale + log2f(sum)) * 0.69314718056f : -infinity();
      }
    }
    unsigned rounded[HEAD / 16][4];
#pragma unroll
    for (int j = 0; j < HEAD / 8; j++) {
#pragma unroll
      for (int half = 0; half < 2; half++) {
        rounded[j / 2][j % 2 * 2 + half] =
            rounded_pair<Type>(o[4 * j + 2 * half] * repair[half], o[4 * j + 2 * half + 1] * repair[half]);
      }
    }

    // The copy engine writes whole boxes, and leaves out what lies outside the rows of the tensor. Of packed sequences
    // the next one begins there, and a block without keys has no place: these threads write for themselves.
    const bool by_threads = work.begin >= end || (PACKED && first_row + ROWS > work.rows);
    if (by_threads) {
#pragma unroll
      for (int half = 0; half < 2; half++) {
        const int r = row + half * 8;
        Half *to = answer + work.batch * sizes.o_batch + work.head * sizes.o_head +
                   static_cast<long long>(work.q_begin + r) * sizes.o_row;
#pragma unroll
        for (int j = 0; j < HEAD / 8; j++) {
          const int column = j * 8 + lane % 4 * 2;
          if (r >= 0 && r < work.rows && column < HEAD_SIZE)
            *reinterpret_cast<unsigned *>(to + column) = rounded[j / 2][j % 2 * 2 + half];
        }
      }
      if (!OWN_PLACE && keys) give_back(&shared.q_empty[w]);
      continue;
    }
    char *place = (OWN_PLACE ? shared.o[w] : shared.q[w]) + warp * 16 * 128;
    if (OWN_PLACE) {
      if (lane == 0) wait_until_read<0>();  // the last answer has left
      __syncwarp();
    }
#pragma unroll
    for (int j = 0; j < HEAD / 16; j++) {
      const unsigned column = (j % 4 * 2 + lane / 16) * 16;  // in bytes, in the panel
      store_matrices(place + j / 4 * Q_PANEL + swizzled(lane % 16 * 128 + column), rounded[j]);
    }
    fence_async();
    __syncwarp();
    if (lane == 0) {
#pragma unroll
      for (int p = 0; p < PANELS; p++)
        store_tile(o_map, place + p * Q_PANEL, p * 64, work.q_begin + first_row + warp * 16, work.head,
                   PACKED ? 0 : work.batch);
      close_bulk_group();
      if (!OWN_PLACE) {
        wait_until_read<0>();
        arrive(&shared.q_empty[w]);
      }
    }
  }
  if (lane == 0) wait_until_read<0>();  // shared memory goes with the block
}

// --- both -------------------------------------------------------------------

// grid: at most the multiprocessors, a multiple of CLUSTER      block: THREADS      dynamic shared memory: sizeof(Shared) + 1024
extern "C" __global__ __launch_bounds__(THREADS, 1) void attention_wgmma(
    const __grid_constant__ TensorMap q_map,  // [B, H, Nq, D], box 64 x 64; PACKED: [1, H, all rows, D]
    const __grid_constant__ TensorMap k_map,  // [B, H / group, Nk, D], box SHARE x 64
    const __grid_constant__ TensorMap v_map,  // as K
    const __grid_constant__ TensorMap o_map,  // as Q, box 16 x 64
    Half *answer,                             // as Q
    float *lse,                               // [B, H, Nq]; PACKED: [H, all rows]
    const int *q_begins, const int *k_begins,
    unsigned *asked,  // ASKS: a zero, which nobody else uses meanwhile; it is zero again afterwards
    int B, int H, int group, int Nq, int Nk, int left, int right,
    int heads_at_once, float scale, long long o_row, long long o_head, long long o_batch, long long lse_head,
    long long lse_batch) {
  const Sizes sizes = {B,     H,     group,  Nq,      Nk,       left,      right,    heads_at_once, scale,
                       o_row, o_head, o_batch, lse_head, lse_batch, q_begins, k_begins, asked};
  extern __shared__ char memory[];
  // The swizzle looks at address bits 7 to 9, so a panel must begin where they are zero.
  Shared &shared = *reinterpret_cast<Shared *>(memory + (1024 - address_in_shared(memory) % 1024) % 1024);
  if (threadIdx.x == 0) {
    prefetch(q_map);
    prefetch(k_map);
    prefetch(v_map);
    prefetch(o_map);
    for (int w = 0; w < CONSUMERS; w++) {
      barrier_init(&shared.q_full[w], 1);
      barrier_init(&shared.q_empty[w], 4);  // each warp of its warpgroup
    }
    for (int i = 0; i < STAGES; i++) {
      barrier_init(&shared.k_full[i], 1);
      barrier_init(&shared.v_full[i], 1);
      barrier_init(&shared.k_empty[i], CLUSTER * CONSUMERS * 4);
      barrier_init(&shared.v_empty[i], CLUSTER * CONSUMERS * 4);
    }
    fence_barrier_init();
    fence_async();
  }
  if (CLUSTER > 1) {
    cluster_arrive();
    cluster_wait();
  } else {
    __syncthreads();
  }
  const int warpgroup = same_in_warp(threadIdx.x / 128);
  if (warpgroup == 0) {
    registers_down<PRODUCER_REGISTERS>();
    if (same_in_warp(threadIdx.x / 32) == 0 && elect_one()) produce(shared, q_map, k_map, v_map, sizes);
  } else {
    registers_up<CONSUMER_REGISTERS>();
    consume(shared, o_map, answer, lse, sizes, warpgroup - 1);
  }
  if (CLUSTER > 1) {  // nobody's shared memory goes while another one still arrives there
    __syncwarp();
    cluster_arrive();
    cluster_wait();
  }
}
