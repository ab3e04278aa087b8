// The gradients of attention, kernel 4: five products, three roles, and dQ added up by the copy engine.
//
// Contract  problem.py      Launcher  k04_wgmma.py      Instructions  ../cuda/hopper
// Idea      a block owns 128 keys and meets the rows of Q in blocks. Scores are made on their side, keys down and rows
//           across: so P and dS come out as the left operand of the products for dV and dK, and stay in registers. Only
//           dQ needs what both warpgroups know: dS goes through shared memory, the sum over blocks of keys through L2
// Against   k03_one_pass, the same sums in Triton, where dQ is added number by number
// Cost      Q and dO are read once for every 128 keys; dQ is added to L2 in float32, once for every 128 keys
// Limits    Hopper (sm_90a) only, 16-bit numbers, D = 64 or 128. In which order blocks of keys add to dQ is open, so two
//           runs may differ in the last bit; with DETERMINISTIC they wait for each other
// Source    Shah et al. 2024, arXiv:2407.08608, section 3 and appendix B; Dao 2023, arXiv:2307.08691, section 3.1.2

#include "hopper/tma.cuh"
#include "hopper/warpgroup.cuh"

#ifndef HEAD
#define HEAD 128
#endif
#ifndef FLOAT16
#define FLOAT16 0
#endif
#ifndef CAUSAL
#define CAUSAL 0  // a row sees keys up to its own place, counted from the end
#endif
#ifndef DETERMINISTIC
#define DETERMINISTIC 0
#endif
#ifndef STAGES
#define STAGES 2  // blocks of rows of Q, and of dO, in shared memory at once
#endif

#if FLOAT16
using Type = F16x16;
#else
using Type = Bf16x16;
#endif
using Half = unsigned short;  // 16 bits that nobody here looks into

constexpr int WARPGROUPS = 2;
constexpr int BLOCK_N = 128;                       // keys of a block, 64 of each warpgroup
constexpr int BLOCK_M = HEAD == 64 ? 128 : 64;     // rows of Q of one step: so dQ is 64 x 64 for each warpgroup
constexpr int THREADS = (WARPGROUPS + 1) * 128;
constexpr int PANELS = HEAD / 64, ROW_PANELS = BLOCK_M / 64;
constexpr unsigned KEY_PANEL = BLOCK_N * 128, ROW_PANEL = BLOCK_M * 128;  // 64 numbers of each key, of each row
constexpr unsigned KEY_BYTES = PANELS * KEY_PANEL, ROW_BYTES = PANELS * ROW_PANEL;
constexpr int SUM = 64 * 64 / 128;  // numbers of dQ that a thread holds

__device__ inline float infinity() { return __int_as_float(0x7f800000); }

struct Shared {
  char k[KEY_BYTES], v[KEY_BYTES];
  char q[STAGES][ROW_BYTES], d_o[STAGES][ROW_BYTES];
  char ds[2][ROW_PANELS * KEY_PANEL];  // keys down, 64 rows across a panel
  float dq[BLOCK_M * HEAD];
  float lse[STAGES][BLOCK_M], delta[STAGES][BLOCK_M];
  Barrier kv_full, q_full[STAGES], q_empty[STAGES], o_full[STAGES], o_empty[STAGES], dq_full, dq_empty;
};

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

struct Sizes {
  int H, group;  // heads of Q, heads of Q for one of K and V
  int Nq, Nk;
  int blocks;    // of rows, ceil(Nq / BLOCK_M)
  float scale, scale_2;  // 1 / sqrt(D); the same times log2(e)
};

// The steps of a block of keys: rows from `first` on, in `group` heads.
struct Work {
  int kv_head, batch, first_key, first, clear;  // from block `clear` on every row sees every key of ours
  __device__ explicit Work(const Sizes &sizes) {
    const int block = CAUSAL && DETERMINISTIC ? gridDim.x - 1 - blockIdx.x : blockIdx.x;
    kv_head = blockIdx.y;
    batch = blockIdx.z;
    first_key = block * BLOCK_N;
    const int offset = sizes.Nk - sizes.Nq;
    first = CAUSAL ? min(max(first_key - offset, 0) / BLOCK_M, sizes.blocks) : 0;
    clear = CAUSAL ? (max(first_key + BLOCK_N - 1 - offset, 0) + BLOCK_M - 1) / BLOCK_M : 0;
    if (first_key + BLOCK_N > sizes.Nk) clear = sizes.blocks;  // keys past the end
  }
};

// --- the producer -----------------------------------------------------------

__device__ inline void produce(Shared &shared, const TensorMap &q_map, const TensorMap &k_map, const TensorMap &v_map,
                               const TensorMap &o_map, const float *lse, const float *delta, const Sizes &sizes) {
  const Work work(sizes);
  arrive_and_expect_bytes(&shared.kv_full, 2 * KEY_BYTES);
#pragma unroll
  for (int p = 0; p < PANELS; p++) {
    load_tile(shared.k + p * KEY_PANEL, k_map, &shared.kv_full, p * 64, work.first_key, work.kv_head, work.batch);
    load_tile(shared.v + p * KEY_PANEL, v_map, &shared.kv_full, p * 64, work.first_key, work.kv_head, work.batch);
  }
  Ring at;
  for (int h = 0; h < sizes.group; h++) {
    const int head = work.kv_head * sizes.group + h;
    const long long vector = (static_cast<long long>(work.batch) * sizes.H + head) * sizes.blocks * BLOCK_M;
    for (int block = work.first; block < sizes.blocks; block++, at.next()) {
      wait(&shared.q_empty[at.stage], at.parity ^ 1);
      arrive_and_expect_bytes(&shared.q_full[at.stage], ROW_BYTES + BLOCK_M * sizeof(float));
#pragma unroll
      for (int p = 0; p < PANELS; p++)
        load_tile(shared.q[at.stage] + p * ROW_PANEL, q_map, &shared.q_full[at.stage], p * 64, block * BLOCK_M, head,
                  work.batch);
      load_bytes(shared.lse[at.stage], lse + vector + block * BLOCK_M, BLOCK_M * sizeof(float), &shared.q_full[at.stage]);
      wait(&shared.o_empty[at.stage], at.parity ^ 1);
      arrive_and_expect_bytes(&shared.o_full[at.stage], ROW_BYTES + BLOCK_M * sizeof(float));
#pragma unroll
      for (int p = 0; p < PANELS; p++)
        load_tile(shared.d_o[at.stage] + p * ROW_PANEL, o_map, &shared.o_full[at.stage], p * 64, block * BLOCK_M, head,
                  work.batch);
      load_bytes(shared.delta[at.stage], delta + vector + block * BLOCK_M, BLOCK_M * sizeof(float),
                 &shared.o_full[at.stage]);
    }
  }
}

// --- who adds dQ up ---------------------------------------------------------

// `sums` lies in the order in which threads hold dQ: only `attention_backward_end` reads it.
__device__ inline void add_up(Shared &shared, float *sums, int *turns, const Sizes &sizes) {
  const Work work(sizes);
  unsigned parity = 0;
  for (int h = 0; h < sizes.group; h++) {
    const int head = work.batch * sizes.H + work.kv_head * sizes.group + h;
    for (int block = work.first; block < sizes.blocks; block++, parity ^= 1) {
      const long long place = static_cast<long long>(head) * sizes.blocks + block;
      wait(&shared.dq_full, parity);
      if (DETERMINISTIC) {
        // Ours is the turn after all blocks of keys that began before this one and see these rows.
        const int last = CAUSAL ? min((block + 1) * BLOCK_M - 1 + sizes.Nk - sizes.Nq, sizes.Nk - 1) / BLOCK_N : 0;
        const int mine = CAUSAL ? last - work.first_key / BLOCK_N : work.first_key / BLOCK_N;
        volatile int *turn = turns + place;
        while (*turn != mine) {
        }
        __threadfence();
      }
      add_floats(sums + place * BLOCK_M * HEAD, shared.dq, BLOCK_M * HEAD * sizeof(float));
      close_bulk_group();
      if (DETERMINISTIC) {
        wait_until_stored<0>();
        __threadfence();
        atomicAdd(turns + place, 1);
      } else {
        wait_until_read<0>();
      }
      arrive(&shared.dq_empty);
    }
  }
  wait_until_read<0>();
}

// --- a warpgroup ------------------------------------------------------------

// 64 x HEAD sums to 16-bit numbers, through shared memory, to the rows of dK or dV from `row` on.
__device__ inline void write_rows(char *place, const TensorMap &map, const float (&sums)[HEAD / 2], float scale, int row,
                                  int head, int batch) {
  const int lane = threadIdx.x % 32;
#pragma unroll
  for (int j = 0; j < HEAD / 16; j++) {
    unsigned held[4];
#pragma unroll
    for (int i = 0; i < 4; i++) held[i] = rounded_pair<Type>(sums[8 * j + 2 * i] * scale, sums[8 * j + 2 * i + 1] * scale);
    const unsigned column = (j % 4 * 2 + lane / 16) * 16;  // in bytes, in the panel
    store_matrices(place + j / 4 * KEY_PANEL + swizzled(lane % 16 * 128 + column), held);
  }
  fence_async();
  __syncwarp();
  if (lane == 0) {
#pragma unroll
    for (int p = 0; p < PANELS; p++) store_tile(map, place + p * KEY_PANEL, p * 64, row, head, batch);
    close_bulk_group();
  }
}

__device__ inline void multiply(Shared &shared, const TensorMap &dk_map, const TensorMap &dv_map, const Sizes &sizes,
                                int w) {
  const Work work(sizes);
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32 % 4, mine = w * 64 + warp * 16;  // of the block's keys
  float dk[HEAD / 2] = {}, dv[HEAD / 2] = {};
  const unsigned keys = address_in_shared(shared.k), values = address_in_shared(shared.v);
  Ring at;
  unsigned dq_parity = 0;
  wait(&shared.kv_full, 0);

  for (int h = 0; h < sizes.group; h++) {
    for (int block = work.first; block < sizes.blocks; block++) {
      const unsigned q = address_in_shared(shared.q[at.stage]), d_o = address_in_shared(shared.d_o[at.stage]);
      float s[BLOCK_M / 2], dp[BLOCK_M / 2];
      unsigned p[BLOCK_M / 16][4], ds[BLOCK_M / 16][4];

      // Scores and dP, each with its keys down: 64 keys, BLOCK_M rows across.
      wait(&shared.q_full[at.stage], at.parity);
      wgmma_fence(s);
#pragma unroll
      for (int i = 0; i < HEAD / 16; i++)
        products<BLOCK_M, Type>(s, k_major(keys + i / 4 * KEY_PANEL + w * 64 * 128 + i % 4 * 32),
                                k_major(q + i / 4 * ROW_PANEL + i % 4 * 32), i != 0);
      wgmma_commit();
      wait(&shared.o_full[at.stage], at.parity);
      wgmma_fence(dp);
#pragma unroll
      for (int i = 0; i < HEAD / 16; i++)
        products<BLOCK_M, Type>(dp, k_major(values + i / 4 * KEY_PANEL + w * 64 * 128 + i % 4 * 32),
                                k_major(d_o + i / 4 * ROW_PANEL + i % 4 * 32), i != 0);
      wgmma_commit();
      wgmma_wait<1>(s);

      // P, of each row's log-sum-exp; past the last row that is infinite, and P is zero.
      const float *lse = shared.lse[at.stage] + lane % 4 * 2, *delta = shared.delta[at.stage] + lane % 4 * 2;
#pragma unroll
      for (int j = 0; j < BLOCK_M / 8; j++) {
        const float2 of_rows = *reinterpret_cast<const float2 *>(lse + j * 8);
#pragma unroll
        for (int e = 0; e < 4; e++)
          s[4 * j + e] = power_of_2(fmaf(s[4 * j + e], sizes.scale_2, -(e % 2 ? of_rows.y : of_rows.x)));
      }
      if (block < work.clear) {
        const int key = work.first_key + mine + lane / 4, row = block * BLOCK_M + lane % 4 * 2 + sizes.Nk - sizes.Nq;
#pragma unroll
        for (int j = 0; j < BLOCK_M / 8; j++) {
#pragma unroll
          for (int e = 0; e < 4; e++) {
            const int k = key + e / 2 * 8;
            if (k >= sizes.Nk || (CAUSAL && k > row + j * 8 + e % 2)) s[4 * j + e] = 0;
          }
        }
      }
      // 16 rows after the other: their part of dV, and beside it dS, from P before it was rounded. So P, dP and what is
      // made of them are never whole in the registers at once.
      wgmma_wait<0>(dp);
      wgmma_fence(dv);
#pragma unroll
      for (int i = 0; i < BLOCK_M / 16; i++) {
        operand<Type>(p[i], s, i);
        products<HEAD, Type, Major::mn>(dv, p[i], mn_major(d_o + i * 16 * 128, ROW_PANEL));
        if (i == BLOCK_M / 16 - 1) wgmma_commit();
#pragma unroll
        for (int j = 2 * i; j < 2 * i + 2; j++) {
          const float2 of_rows = *reinterpret_cast<const float2 *>(delta + j * 8);
#pragma unroll
          for (int e = 0; e < 4; e++) dp[4 * j + e] = s[4 * j + e] * (dp[4 * j + e] - (e % 2 ? of_rows.y : of_rows.x));
        }
        operand<Type>(ds[i], dp, i);
      }

      // To both warpgroups. Two places, in turns: at the next meeting everybody has multiplied what lies here.
      char *place = shared.ds[block % 2];
#pragma unroll
      for (int i = 0; i < BLOCK_M / 16; i++) {
        const unsigned column = (i % 4 * 2 + lane / 16) * 16;
        store_matrices(place + i / 4 * KEY_PANEL + swizzled((mine + lane % 16) * 128 + column), ds[i]);
      }
      fence_async();
      named_barrier_wait(1, WARPGROUPS * 128);

      // dQ, of all keys: one warpgroup has its left columns and the other its right ones, or upper and lower rows.
      float dq[SUM];
      const unsigned all = address_in_shared(place) + (BLOCK_M == 128 ? w * KEY_PANEL : 0);
      wgmma_fence(dq);
#pragma unroll
      for (int i = 0; i < BLOCK_N / 16; i++)
        products<64, Type, Major::mn, Major::mn>(dq, mn_major(all + i * 16 * 128, KEY_PANEL),
                                                 mn_major(keys + (HEAD == 128 ? w * KEY_PANEL : 0) + i * 16 * 128, KEY_PANEL),
                                                 i != 0);
      wgmma_commit();
      wgmma_fence(dk);
#pragma unroll
      for (int i = 0; i < BLOCK_M / 16; i++)
        products<HEAD, Type, Major::mn>(dk, ds[i], mn_major(q + i * 16 * 128, ROW_PANEL));
      wgmma_commit();
      wgmma_wait<1>(dq, dv);
      __syncwarp();  // all 32 have read delta, and one says so
      if (lane == 0) arrive(&shared.o_empty[at.stage]);
      wait(&shared.dq_empty, dq_parity ^ 1);
      dq_parity ^= 1;
      float4 *to = reinterpret_cast<float4 *>(shared.dq) + w * 128 * SUM / 4 + threadIdx.x % 128;
#pragma unroll
      for (int i = 0; i < SUM / 4; i++) to[i * 128] = {dq[4 * i], dq[4 * i + 1], dq[4 * i + 2], dq[4 * i + 3]};
      fence_async();
      __syncwarp();
      if (lane == 0) arrive(&shared.dq_full);
      wgmma_wait<0>(dk);  // it ran while dQ was written
      __syncwarp();       // all 32 have read the log-sum-exp
      if (lane == 0) arrive(&shared.q_empty[at.stage]);
      at.next();
    }
  }
  // K and V have been read for the last time, by both: their places take the answers.
  named_barrier_wait(1, WARPGROUPS * 128);
  const int row = work.first_key + mine;
  write_rows(shared.v + mine * 128, dv_map, dv, 1.f, row, work.kv_head, work.batch);
  write_rows(shared.k + mine * 128, dk_map, dk, sizes.scale, row, work.kv_head, work.batch);
  if (lane == 0) wait_until_read<0>();
}

// --- the three kernels ------------------------------------------------------

// Rows past the last one have an infinite log-sum-exp: their P is zero, and so is all that comes of it.
// grid: ceil(heads * blocks * BLOCK_M / 8)      block: 256, a warp for each row
extern "C" __global__ void attention_backward_begin(const Half *o, const Half *d_o,  // [B, H, Nq, D]
                                                    const float *lse,                // [B, H, Nq]
                                                    float *lse_2, float *delta,      // [B, H, blocks * BLOCK_M]
                                                    float *sums,                     // as many times HEAD, in another order
                                                    int Nq, int blocks, int heads) {
  const int lane = threadIdx.x % 32, rows = blocks * BLOCK_M;
  const long long place = blockIdx.x * 8LL + threadIdx.x / 32;
  if (place >= static_cast<long long>(heads) * rows) return;
  const long long head = place / rows;
  const int row = static_cast<int>(place % rows);
  float sum = 0;
  if (row < Nq) {
    const long long from = (head * Nq + row) * HEAD;
#pragma unroll
    for (int i = 0; i < PANELS; i++) {
      const unsigned a = reinterpret_cast<const unsigned *>(o + from)[i * 32 + lane];
      const unsigned b = reinterpret_cast<const unsigned *>(d_o + from)[i * 32 + lane];
      sum += unpacked<Type>(a, 0) * unpacked<Type>(b, 0) + unpacked<Type>(a, 1) * unpacked<Type>(b, 1);
    }
  }
#pragma unroll
  for (int step = 16; step; step /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, step);
#pragma unroll
  for (int i = 0; i < HEAD / 32; i++) sums[place * HEAD + i * 32 + lane] = 0;
  if (lane) return;
  // A row that saw no key has -inf there: it has no P either.
  const float of_row = row < Nq ? lse[head * Nq + row] * 1.44269504089f : infinity();
  lse_2[place] = of_row > -infinity() ? of_row : infinity();
  delta[place] = sum;
}

// grid: ceil(Nk / BLOCK_N), heads of K, B      block: THREADS      dynamic shared memory: sizeof(Shared) + 1024
extern "C" __global__ __launch_bounds__(THREADS, 1) void attention_backward_wgmma(
    const __grid_constant__ TensorMap q_map,   // [B, H, Nq, D], box BLOCK_M x 64
    const __grid_constant__ TensorMap k_map,   // [B, KV, Nk, D], box BLOCK_N x 64
    const __grid_constant__ TensorMap v_map,   // as K
    const __grid_constant__ TensorMap o_map,   // dO, as Q
    const __grid_constant__ TensorMap dk_map,  // as K, box 16 x 64
    const __grid_constant__ TensorMap dv_map,  // as V, box 16 x 64
    const float *lse, const float *delta, float *sums,
    int *turns,  // DETERMINISTIC: [B, H, blocks], zeros
    int H, int group, int Nq, int Nk, int blocks, float scale, float scale_2) {
  const Sizes sizes = {H, group, Nq, Nk, blocks, scale, scale_2};
  extern __shared__ char memory[];
  // The swizzle looks at address bits 7 to 9, so a panel must begin where they are zero.
  Shared &shared = *reinterpret_cast<Shared *>(memory + (1024 - address_in_shared(memory) % 1024) % 1024);
  if (threadIdx.x == 0) {
    prefetch(q_map);
    prefetch(o_map);
    barrier_init(&shared.kv_full, 1);
    for (int i = 0; i < STAGES; i++) {
      barrier_init(&shared.q_full[i], 1);
      barrier_init(&shared.o_full[i], 1);
      barrier_init(&shared.q_empty[i], WARPGROUPS * 4);  // each warp that multiplies
      barrier_init(&shared.o_empty[i], WARPGROUPS * 4);
    }
    barrier_init(&shared.dq_full, WARPGROUPS * 4);
    barrier_init(&shared.dq_empty, 1);
    fence_barrier_init();
    fence_async();
  }
  __syncthreads();
  const int warpgroup = same_in_warp(threadIdx.x / 128);
  if (warpgroup == 0) {
    registers_down<24>();
    const int warp = same_in_warp(threadIdx.x / 32);
    if (warp == 0 && elect_one()) produce(shared, q_map, k_map, v_map, o_map, lse, delta, sizes);
    if (warp == 1 && elect_one()) add_up(shared, sums, turns, sizes);
  } else {
    registers_up<240>();
    multiply(shared, dk_map, dv_map, sizes, warpgroup - 1);
  }
}

// dQ from its sums, which lie as the threads held them: four numbers, two of a row and two of the one eight below.
// grid: heads * blocks * BLOCK_M * HEAD / 1024      block: 256
extern "C" __global__ void attention_backward_end(const float *sums, Half *dq,  // [B, H, Nq, D]
                                                  int Nq, int blocks, float scale) {
  const long long place = blockIdx.x * 256LL + threadIdx.x;
  constexpr int OF_BLOCK = BLOCK_M * HEAD / 4;
  const int thread = place % 128, i = place / 128 % (SUM / 4), w = place % OF_BLOCK / (128 * SUM / 4);
  const long long head = place / OF_BLOCK / blocks;
  const int block = static_cast<int>(place / OF_BLOCK % blocks);
  const int row = block * BLOCK_M + (HEAD == 64 ? w * 64 : 0) + thread / 32 * 16 + thread % 32 / 4;
  const int column = (HEAD == 128 ? w * 64 : 0) + i * 8 + thread % 4 * 2;
  const float4 x = reinterpret_cast<const float4 *>(sums)[place];
  Half *to = dq + (head * Nq + row) * HEAD + column;
  if (row < Nq) *reinterpret_cast<unsigned *>(to) = rounded_pair<Type>(x.x * scale, x.y * scale);
  if (row + 8 < Nq) *reinterpret_cast<unsigned *>(to + 8 * HEAD) = rounded_pair<Type>(x.z * scale, x.w * scale);
}
