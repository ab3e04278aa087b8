// NVFP4 weights, kernel 3: the blocks of a cluster divide K, and a warp holds all of its block's part of x.
//
// Contract  problem.py, M <= 16      Launcher  k03_cluster.py
// Idea      the blocks of a cluster divide K, so that a block needs a part of x only, and a warp can hold all of that part:
//           warps go through tiles of their own and meet nobody. Each sends its sums, a tile's at a time, to the block of
//           the cluster that adds them, and goes on
// Against   k02_fragments, where sixteen warps divide K, add their sums in shared memory and meet after two tiles; where
//           each block fetches all of x, behind a ring full of weights; and where every lane asks for its own 16 bytes:
//           here one lane asks for the warp. A scale there is made twice for a multiply; here it is half of an operand
// Cost      a word, eight weights: four shifts, five masks, four multiplies, and less than one for the scales. Shared
//           memory for the sums of TILES tiles of each team from all blocks; a meeting of the cluster for each TILES. And
//           multiprocessors beside which no whole cluster finds room stay idle
// Limits    Hopper; 16 rows of x; 32768 columns. A warp holds 512 columns of x, so beyond 4096 several warps of a block
//           divide its part of K, as a team
// Next      wgmma, with x in shared memory: one instruction of the tensor cores for the words of four warps
// Source    CUDA C++ Programming Guide, clusters and distributed shared memory; PTX ISA, st.async and cp.async.bulk; the
//           fragments are those of k02_fragments
#include "hopper/cluster_start.cuh"
#include "hopper/tma.cuh"
#include "hopper/warpgroup.cuh"
#include "matrix_instructions.cuh"
#include "halves.cuh"
#include "pairs.cuh"
#include "send.cuh"

// Of the launcher: EIGHTS (times 8 rows of x), BLOCKS (of a cluster), GROUPS (of 128 columns, of a block), HELD (of these,
// of a warp: each takes 16 registers for 8 rows of x), SHARES (warps of a team), TEAMS (of a block, each with tiles of its
// own), STAGES (tiles that a warp copies ahead), TILES (of a team, before the cluster meets), and X_FIRST (0: weights are
// asked for before the last grid has ended, x after).
constexpr int WARP = 32, WARPS = SHARES * TEAMS, THREADS = WARPS * WARP;
constexpr int SUMS = EIGHTS * 4 * WARP;     // 16 rows of weights times those of x
constexpr int FOURS = SUMS / 4;             // four of a lane at a time
constexpr int X_BYTES = GROUPS * 256 + 16;  // a row of x: eight lanes meet all banks
constexpr int ROWS = 8 * EIGHTS;
constexpr int SLOTS = 2;  // for the sums of a team's warps: of a tile that is written, and of one that is added
constexpr int TURNS = SHARES > EIGHTS ? SHARES / EIGHTS : 1;  // tiles after which a warp adds sums again
constexpr int UNITS = (TEAMS * TILES + BLOCKS - 1) / BLOCKS;  // tiles whose sums a block adds, between two meetings
constexpr float LEFT = 128.0f;  // 2**7: of the weights' 2**-126 and the scales' 2**119

struct alignas(16) Stage {  // what a warp has of a tile
  uint4 words[HELD][2][WARP];   // of 64 columns each
  unsigned scales[HELD][WARP];  // of rows r and r + 8, of the first 64 columns and of the others
};

struct alignas(128) Barriers {
  Barrier x_came, full[WARPS][STAGES], written[TEAMS][SLOTS], added[TEAMS][SLOTS], inbox[UNITS];
};

__device__ inline void add_to(float4 &sum, float4 x) { sum.x += x.x, sum.y += x.y, sum.z += x.z, sum.w += x.w; }

// Eight weights of a word to the four registers of a multiply: 2**-126 of each.
__device__ inline void unpack(unsigned (&registers)[4], unsigned word) {
  constexpr unsigned CODES = 0x81c081c0u;  // sign, exponent and mantissa, twice
  registers[0] = word << 6 & CODES;
  registers[1] = word << 2 & CODES;
  registers[2] = (word >> 4 | word << 28) & CODES;
  registers[3] = (word & 0x81808180u) | (word >> 8 & 0x00400040u);
}

// grid: clusters of BLOCKS      block: THREADS      dynamic shared memory: see the launcher
extern "C" __global__ void __launch_bounds__(THREADS, 1)
    skinny_gemm_fp4_cluster(const unsigned short *x,              // [M, 128 * groups]
                            const uint4 *__restrict__ words,      // [tiles, groups, 2, 32]
                            const unsigned *__restrict__ scales,  // [tiles, groups, 32]
                            const float *__restrict__ second,     // [1]
                            unsigned short *__restrict__ y,       // [M, 16 * tiles]
                            int M, int tiles, int groups) {
  extern __shared__ __align__(128) char room[];
  const int lane = threadIdx.x % WARP, warp = same_in_warp(threadIdx.x / WARP);
  const int team = warp / SHARES, share = warp % SHARES;
  const int rank = blockIdx.x % BLOCKS, cluster = blockIdx.x / BLOCKS, step = gridDim.x / BLOCKS * TEAMS;
  Barriers &barriers = *reinterpret_cast<Barriers *>(room);
  Barrier *full = barriers.full[warp], *written = barriers.written[team], *added = barriers.added[team];
  Stage *ring = reinterpret_cast<Stage *>(room + sizeof(Barriers)) + warp * STAGES;
  char *rows = room + sizeof(Barriers) + WARPS * STAGES * sizeof(Stage);  // of x, [ROWS, X_BYTES]
  float4 *inbox = reinterpret_cast<float4 *>(rows + ROWS * X_BYTES);      // [UNITS, BLOCKS, FOURS]
  float4 *slots = inbox + (UNITS * BLOCKS + team * SLOTS * SHARES) * FOURS;  // [SLOTS, SHARES, FOURS]

  // The groups of this warp, of all tiles of its team: at the end of K one may be missing, or both.
  const int block_first = rank * GROUPS, of_block = max(min(groups - block_first, GROUPS), 0);
  const int first = block_first + share * HELD, mine = max(min(of_block - share * HELD, HELD), 0);

  auto ask_for_x = [&] {  // by the first warp
    const int bytes = of_block * 256;
    if (elect_one()) arrive_and_expect_bytes(&barriers.x_came, M * bytes);
    __syncwarp();
    const unsigned short *from = x + (lane * static_cast<long long>(groups) + block_first) * 128;
    if (lane < M && bytes) load_bytes(rows + lane * X_BYTES, from, bytes, &barriers.x_came);
  };
  int tile_asked = cluster * TEAMS + team;
  long long next = static_cast<long long>(tile_asked) * groups + first;
  const long long next_step = static_cast<long long>(step) * groups;
  auto ask = [&](int stage) {  // for the next tile; nothing past the last
    Stage *to = ring + stage;
    if (tile_asked < tiles) {
      if (elect_one()) {
        Barrier *b = &full[stage];
        arrive_and_expect_bytes(b, mine * (1024 + 128));
        if (mine) load_bytes(to->words, words + next * 64, mine * 1024, b);
        if (mine) load_bytes(to->scales, scales + next * WARP, mine * 128, b);
      }
    }
    next += next_step, tile_asked += step;
  };

  // First what asks, and the barriers for that; then, while all of it comes, the others.
  let_next_grid_begin();
  if (X_FIRST) wait_for_last_grid();
  if (elect_one()) {  // the same lane as in `ask`
    if (warp == 0) barrier_init(&barriers.x_came, 1);
#pragma unroll 1
    for (int i = 0; i < STAGES; i++) barrier_init(&full[i], 1);
    fence_barrier_init();
  }
  __syncwarp();
  if (X_FIRST && warp == 0) ask_for_x();
#pragma unroll 1
  for (int i = 0; i < STAGES; i++) ask(i);
  if (!X_FIRST) wait_for_last_grid();  // weights were there before; x may be the work of the last grid
  if (!X_FIRST && warp == 0) ask_for_x();
  // What is never asked for: zeros. So the product needs no branch, and its loads need not wait behind one.
#pragma unroll 1
  for (int i = 0; i < STAGES * HELD; i++) {
    const int group = i % HELD;
    if (group < mine) continue;
    ring[i / HELD].words[group][0][lane] = ring[i / HELD].words[group][1][lane] = {0, 0, 0, 0};
    ring[i / HELD].scales[group][lane] = 0;
  }
  if (lane == 0 && share == 0 && SHARES > 1) {  // every lane speaks for itself
#pragma unroll
    for (int i = 0; i < SLOTS; i++) barrier_init(&written[i], SHARES * WARP), barrier_init(&added[i], EIGHTS * WARP);
  }
  auto tile_of = [&](int i, int of_team) { return cluster * TEAMS + of_team + i * step; };
  auto tile_of_unit = [&](int begin, int unit) {
    const int u = unit * BLOCKS + rank;
    return u < TEAMS * TILES ? tile_of(begin + u / TEAMS, u % TEAMS) : tiles;
  };
  auto announce = [&](int begin, int unit) {  // the sums of all blocks
    if (tile_of_unit(begin, unit) < tiles) arrive_and_expect_bytes(&barriers.inbox[unit], BLOCKS * SUMS * 4);
  };
  if (lane == 0) {  // who announces them anew, too
#pragma unroll 1
    for (int unit = warp; unit < UNITS; unit += WARPS) barrier_init(&barriers.inbox[unit], 1), announce(0, unit);
    fence_barrier_init();
  }
  const float factor = *second * LEFT;
  __syncthreads();  // the barriers are there
  cluster_arrive_relaxed();

  wait(&barriers.x_came, 0);
  unsigned held[HELD][2][EIGHTS][8];
#pragma unroll
  for (int part = 0; part < HELD * 4 * EIGHTS; part++) {
    const int half = part % 2, eight = part / 2 % EIGHTS, tile_k = part / 2 / EIGHTS % 2, group = part / 4 / EIGHTS;
    const int m = eight * 8 + lane / 4;
    uint4 eight_numbers = {0, 0, 0, 0};
    const char *from = rows + m * X_BYTES + (share * HELD + group) * 256 + tile_k * 128 + lane % 4 * 32 + half * 16;
    // Rows that x has not are whatever lay there, and their sums are stored nowhere.
    if (group < mine) eight_numbers = *reinterpret_cast<const uint4 *>(from);
    unsigned *to = &held[group][tile_k][eight][half * 4];
    to[0] = eight_numbers.x, to[1] = eight_numbers.y, to[2] = eight_numbers.z, to[3] = eight_numbers.w;
  }

  auto store = [&](int tile, int m, int n, float total) {
    if (m < M) y[m * 16LL * tiles + tile * 16LL + n] = static_cast<unsigned short>(Bf16::pair(total * factor, 0.0f));
  };
  // Sums of 8 rows of x, to the block that adds those of all blocks: they take turns, tile by tile.
  auto send = [&](int here, int eight, float4 sums) {
    const int u = here * TEAMS + team, unit = u / BLOCKS;
    float4 *to = inbox + (unit * BLOCKS + rank) * FOURS + eight * WARP + lane;
    send_16_bytes(to, sums, &barriers.inbox[unit], u % BLOCKS);
  };
  // The sums of all warps of the team, of its tile i: by those whose turn it is.
  auto add = [&](unsigned i, int here) {
    const unsigned slot = i % SLOTS, eight = share % EIGHTS;
    if (share / EIGHTS != i % TURNS) return;
    wait(&written[slot], i / SLOTS & 1);
    float4 total = {0.0f, 0.0f, 0.0f, 0.0f};
#pragma unroll
    for (int w = 0; w < SHARES; w++) add_to(total, slots[(slot * SHARES + w) * FOURS + eight * WARP + lane]);
    arrive(&added[slot]);
    send(here, eight, total);
  };

  // The second number is always 0, but the compiler cannot know: a LOP3 has room for one constant, and this stays in a
  // register.
  const unsigned base = 0x70007000u | threadIdx.y;
  unsigned i = 0, stage = 0, side = 0;
  for (int begin = 0, round = 0;; begin += TILES, round ^= 1) {
    int here = 0;
#pragma unroll 1
    for (; here < TILES && tile_of(i, team) < tiles; here++, i++) {
      wait(&full[stage], side);
      float sum[2][EIGHTS][4] = {};  // rows r, r + 8 of the weights, two rows of x; in two chains that need not wait
#pragma unroll
      for (int group = 0; group < HELD; group++) {
        const unsigned four_scales = ring[stage].scales[group][lane];
        // 2**119 of a scale, of rows r and of rows r + 8, of both tiles of columns.
        const unsigned scale[2] = {(four_scales << 4 & 0x0ff00ff0u) | base, (four_scales >> 4 & 0x0ff00ff0u) | base};
#pragma unroll
        for (int tile_k = 0; tile_k < 2; tile_k++) {
          const uint4 four = ring[stage].words[group][tile_k][lane];
          const unsigned word[4] = {four.x, four.y, four.z, four.w};
#pragma unroll
          for (int j = 0; j < 4; j++) {
            unsigned a[4];
            unpack(a, word[j]);
#pragma unroll
            for (int k = 0; k < 4; k++) {
              a[k] = tile_k ? bf16_times_second(a[k], scale[k % 2]) : bf16_times_first(a[k], scale[k % 2]);
            }
#pragma unroll
            for (int eight = 0; eight < EIGHTS; eight++) {
              Bf16::multiply(sum[tile_k][eight], a, &held[group][tile_k][eight][2 * j]);
            }
          }
        }
      }
      __syncwarp();  // all lanes have read what comes anew
      ask(stage);
      if (++stage == STAGES) stage = 0, side ^= 1;
      const unsigned slot = i % SLOTS;
      if (i == 0) cluster_wait();  // the barriers of all blocks are there
      if (SHARES > 1) wait(&added[slot], i / SLOTS + 1 & 1);  // the sums that were here
#pragma unroll
      for (int eight = 0; eight < EIGHTS; eight++) {
        const float *one = sum[0][eight], *other = sum[1][eight];
        const float4 both = {one[0] + other[0], one[1] + other[1], one[2] + other[2], one[3] + other[3]};
        if (SHARES == 1) send(here, eight, both);
        else slots[(slot * SHARES + share) * FOURS + eight * WARP + lane] = both;
      }
      if (SHARES == 1) continue;
      arrive(&written[slot]);
      if (here) add(i - 1, here - 1);
    }
    if (SHARES > 1 && here) add(i - 1, here - 1);
    for (int unit = warp; unit < UNITS; unit += WARPS) {
      const int tile = tile_of_unit(begin, unit);
      if (tile >= tiles) continue;
      wait_for_cluster(&barriers.inbox[unit], round);
#pragma unroll
      for (int eight = 0; eight < EIGHTS; eight++) {
        float4 total = {0.0f, 0.0f, 0.0f, 0.0f};
#pragma unroll
        for (int b = 0; b < BLOCKS; b++) add_to(total, inbox[(unit * BLOCKS + b) * FOURS + eight * WARP + lane]);
        const int m = eight * 8 + lane % 4 * 2, n = lane / 4;
        store(tile, m, n, total.x), store(tile, m + 1, n, total.y);
        store(tile, m, n + 8, total.z), store(tile, m + 1, n + 8, total.w);
      }
      if (lane == 0) announce(begin + TILES, unit);
    }
    if (begin == 0 && i == 0) cluster_wait();  // a team without a tile
    if (tile_of(begin + TILES, 0) >= tiles) break;
    cluster_arrive();  // all have been read: the next ones may come
    cluster_wait();
  }
}
