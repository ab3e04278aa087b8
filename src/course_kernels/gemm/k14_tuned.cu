// Matrix multiply, kernel 14: what is left. C leaves while the next tile is multiplied, hints for L2, an early start.
//
// Contract  problem.py      Launcher  k14_tuned.py, plans.py      Parts  by_size.cuh, stream_k.cuh
// Idea      small things, each with its switch. LATE: a consumer rounds its sums into registers and asks for the next
//           tile's products at once; a panel of C goes out behind each of their first steps. LAG: the second consumer
//           begins some steps behind the first, so that they do not round at the same time. BEGUN: who has no tile in
//           the last round begins those of the others (stream_k.cuh). HINTS: C is not read again here, so L2 is told to
//           let it go first. And a grid may begin while the last one of the stream ends: its barriers and maps are
//           ready when it may read
// Against   k13_by_size, whose two consumers store a tile at the same time, and nobody multiplies meanwhile
// Cost      as k13_by_size; LATE takes half as many registers as there are sums
// Limits    Hopper (sm_90a) only; K and N are multiples of 8. B may lie as [K, N] or as [N, K]
// Source    PTX ISA, setmaxnreg, createpolicy and griddepcontrol; CUTLASS, Efficient GEMM; Shankhdhar 2024,
//           Outperforming cuBLAS on H100

#include "hopper/tma.cuh"
#include "hopper/warpgroup.cuh"
#include "stream_k.cuh"

#ifndef HINTS
#define HINTS 1  // C leaves L2 first
#endif
#ifndef LATE
#define LATE 1  // panels of C go out during the first steps of the next tile
#endif
#ifndef LAG
#define LAG 1  // steps that the second consumer begins behind the first, in a tile of 2 * STAGES steps or more
#endif
constexpr int BEHIND = 3;  // the named barrier of LAG: the consumers' own are 1 and 2
constexpr int MORE = LATE && BEGUN ? 8 : 0;  // registers of a consumer: a tile held, sums, and those that are added
static_assert(LAG < STAGES, "the first consumer gets no further than the ring without the second");
static_assert(!LATE || WIDE <= STAGES, "the last tile's panels find a place each");

// grid: a multiple of CLUSTER      block: THREADS      dynamic shared memory: STAGES * (STAGE_BYTES + 16) + C_BYTES
extern "C" __global__ __launch_bounds__(THREADS, 1) void gemm_tuned(
    const __grid_constant__ TensorMap a_map,  // [M, K], box BM / CLUSTER_N x 64
    const __grid_constant__ TensorMap b_map,  // [K, N], box 64 x 64; TRANSPOSED: [N, K], box BN / CLUSTER_M x 64
    const __grid_constant__ TensorMap c_map,  // [M, N], box 64 x 64
    float *partial,                           // SPLIT: [splits, M, N]; BEGUN: sums and flags, see stream_k.cuh
    int M, int N, int K, int group, int splits, int ahead) {
  extern __shared__ __align__(1024) char memory[];
  char *c_panels = memory + STAGES * STAGE_BYTES;
  Barrier *full = reinterpret_cast<Barrier *>(c_panels + C_BYTES), *empty = full + STAGES;
  const int warpgroup = same_in_warp(threadIdx.x / 128);
  Turns turns = turns_of(M, N, splits);
  const Begun begun = begun_of(turns, M, N);
  if (threadIdx.x == 0) {
    prefetch(a_map);
    prefetch(b_map);
    prefetch(c_map);
  }
  begin_ring(full, empty);
  let_next_grid_begin();  // it finds room when blocks of this one end
  wait_for_last_grid();   // it may have written A or B, or still read C

  unsigned at = 0;
  if (warpgroup == 0) {
    registers_down<40 - MORE * 2>();
    if (threadIdx.x == 0) {
      for (int turn = 0; turn < turns.all; turn++) {
        const Part part = turn_at(turns, begun, turn, M, N, K, group, splits, ahead);
        for (int step = part.begin; step < part.end; step++, at++) {
          const int s = at % STAGES;
          wait(&empty[s], at / STAGES & 1 ^ 1);
          fetch(memory + s * STAGE_BYTES, &full[s], a_map, b_map, part.m, part.n, step * BK);
        }
      }
    }
    __syncwarp();  // the warp is whole again, as the barrier at the end wants it
  } else {
    registers_up<232 + MORE>();
    const int consumer = warpgroup - 1, thread = threadIdx.x % 128;
    char *mine = c_panels + consumer * C_PANELS * PANEL_BYTES;
    float d[STRIPS][BN / 2];
    unsigned held[PANELS][16];  // the tile before, rounded; without LATE, this one

    // A lag wants a tile that is long enough for it: the first consumer never tells the second twice.
    auto lags = [&](const Part &part) { return LAG && CONSUMERS == 2 && part.end - part.begin >= 2 * STAGES; };
    auto step_of = [&](const Part &part, int step) {
      wait(&full[at % STAGES], at / STAGES & 1);
      multiply(d, memory + at % STAGES * STAGE_BYTES, consumer, step > part.begin);
      if (consumer == 0 && step - part.begin == LAG - 1 && lags(part)) named_barrier_arrive(BEHIND, 256);
    };
    auto settle = [&](const Part &part, int step) {
      wgmma_wait<1>();  // the step before is done; this one goes on
      if (step > part.begin) give_back(&empty[(at - 1) % STAGES]);
      at++;
    };
    auto store = [&](const Part &part, int p, char *place) {
      named_barrier_wait(warpgroup, 128);
      put_panel(place, [&](int j, unsigned (&four)[4]) {
#pragma unroll
        for (int i = 0; i < 4; i++) four[i] = held[p][j * 4 + i];
      });
      named_barrier_wait(warpgroup, 128);
      if (thread == 0) store_panel<HINTS>(c_map, place, part, consumer, p);
    };
    auto store_soon = [&](const Part &part, int p) {
      if (thread == 0) wait_until_read<C_PANELS - 1>();
      store(part, p, mine + p % C_PANELS * PANEL_BYTES);
    };

    Part last = {};
    bool have = false;
    for (int turn = 0; turn < turns.all; turn++) {
      const Part part = turn_at(turns, begun, turn, M, N, K, group, splits, ahead);
      int step = part.begin;
      if (consumer == 1 && lags(part)) named_barrier_wait(BEHIND, 256);
#pragma unroll
      for (int p = 0; p < (LATE && !SPLIT ? PANELS : 0); p++) {
        if (step < part.end) step_of(part, step);
        if (have) store_soon(last, p);
        if (step < part.end) settle(part, step++);
      }
      for (; step < part.end; step++) {
        step_of(part, step);
        settle(part, step);
      }
      finish(d);
      give_back(&empty[(at - 1) % STAGES]);
      if (BEGUN && part.split >= 0 && part.begin == 0) {
        leave(d, left_at(partial, begun, part.split, consumer), consumer);
        continue;
      }
      if (BEGUN && part.begin > 0) {
        add_left(held, d, left_at(partial, begun, part.split, consumer), consumer);
      } else {
#pragma unroll
        for (int r = 0; r < STRIPS; r++) {
          const int m = part.m + (consumer * STRIPS + r) * 64;
          if (SPLIT) write_floats(d[r], partial + static_cast<long long>(part.split) * M * N, M, N, m, part.n);
#pragma unroll
          for (int i = 0; i < BN / 4; i++) held[r * WIDE + i / 16][i % 16] = rounded_pair<Type>(d[r][2 * i], d[r][2 * i + 1]);
        }
      }
#pragma unroll
      for (int p = 0; p < (LATE || SPLIT ? 0 : PANELS); p++) store_soon(part, p);
      last = part;
      have = true;
    }
#pragma unroll
    for (int p = 0; p < (LATE && !SPLIT && have ? PANELS : 0); p++) {
      // Nothing more is coming to the ring: panels for which there is no place of their own take this consumer's of A.
      if (p < C_PANELS) {
        store_soon(last, p);
      } else {
        store(last, p, memory + p / STRIPS % STAGES * STAGE_BYTES + (consumer * STRIPS + p % STRIPS) * PANEL_BYTES);
      }
    }
    if (thread == 0) wait_until_read<0>();
  }
  if (CLUSTER > 1) {
    cluster_arrive();
    cluster_wait();
  }
}
