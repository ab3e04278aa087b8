// A linear layer of a step of decoding, kernel 2: every block reads the same number of weights, and a warp each for what
// is not multiplying.
//
// Contract  problem.py, M <= 32      Launcher  k02_even.py
// Idea      the weights of all tiles lie in one row of boxes, cut into as many equal parts as there are blocks: nobody
//           ends early. Where a cut goes through a tile, its parts are added by whoever comes last, in their order. One
//           warp asks the copy engine for boxes, far ahead, and for the first weights before the last grid has ended; one
//           weighs the numbers of x for the norm where they lie; two warpgroups multiply, and hold up nobody while they
//           finish a tile
// Against   k01_stream: there a warp holds its columns of x in registers, and with 32 rows of x that is too much: K is
//           cut in two, and for every tile warps wait for memory while their block waits for them
// Cost      each weight crosses memory once; x comes from L2 once for each 128 rows of weights
// Limits    Hopper; 32 rows of x. The product takes 16 rows of x or 32, so fewer are zeros that are multiplied, too
// Source    Osama et al. 2023, arXiv:2301.03598 (the even cut: stream-K); CUDA C++ Programming Guide, programmatic
//           dependent launch; the ticket: CUDA samples, threadFenceReduction
#include "hopper/tma.cuh"
#include "hopper/warpgroup.cuh"
#include "tma_tiles.cuh"

constexpr int PART = (2 * HALF + 1) * ROWS;  // what a block leaves of a tile: sums, and the squares of x
constexpr int FINISHING = 1;                 // the named barrier of those who multiply
constexpr int EACH = ROWS * HALF / MULTIPLYING;  // rows of x of which a thread finishes a number

// Rows of all tiles, in boxes of 64 columns; of these a block takes the ones from `begin` on.
struct Cut {
  int tiles, pieces, blocks;  // pieces: boxes of a row of weights
  __device__ int begin(int block) const { return static_cast<int>(static_cast<long long>(block) * tiles * pieces / blocks); }
  __device__ int block_of(int box) const {
    return static_cast<int>(((box + 1LL) * blocks - 1) / (static_cast<long long>(tiles) * pieces));
  }
};

// A tile, and those of its boxes that are this block's.
struct Part {
  int tile, begin, end;
};

__device__ inline Part part_at(const Cut &cut, int box, int last) {
  const int tile = box / cut.pieces, begin = box - tile * cut.pieces;
  return {tile, begin, min(cut.pieces, begin + last - box)};
}

// --- the kernel -------------------------------------------------------------

// grid: blocks      block: THREADS      dynamic shared memory: see the launcher
extern "C" __global__ void __launch_bounds__(THREADS, 1)
    decode_linear_even(const __grid_constant__ TensorMap x_map,   // [M, K], box ROWS x 64
                       const __grid_constant__ TensorMap first,   // [N, K], box BOX x 64: weights; of the gate; of queries
                       const __grid_constant__ TensorMap second,  // GATE: up; ROPE: of keys
                       const __grid_constant__ TensorMap third,   // ROPE: of values
                       const unsigned short *g,                   // NORM: [K]
                       const unsigned short *residual, const float *cos, const float *sin, const long long *position,
                       unsigned short *y, unsigned short *k_cache, unsigned short *v_cache, int M, int N, int tiles,
                       int pieces, float epsilon, int H, int KV, int room,
                       float *parts,       // [2 * blocks, PART]
                       unsigned *tickets) {  // [tiles], all zero before and after
  extern __shared__ __align__(1024) char memory[];
  float *sums = reinterpret_cast<float *>(memory + STAGES * STAGE_BYTES);   // [2 * HALF, PITCH]
  float *squares = sums + 2 * HALF * PITCH;                        // [2, ROWS], by parts in turn
  Barrier *full = reinterpret_cast<Barrier *>(squares + 2 * ROWS);  // the boxes are there
  Barrier *weighed = full + STAGES, *empty = weighed + STAGES, *seen = empty + STAGES;  // seen: the squares
  __shared__ unsigned before;
  const int warp = same_in_warp(threadIdx.x / 32), lane = threadIdx.x % 32;
  const Cut cut = {tiles, pieces, static_cast<int>(gridDim.x)};
  const int mine = cut.begin(blockIdx.x), last = cut.begin(blockIdx.x + 1);
  if (threadIdx.x == 0) {
    for (int s = 0; s < STAGES; s++) {
      barrier_init(&full[s], 1);
      barrier_init(&weighed[s], 32);
      barrier_init(&empty[s], MULTIPLYING / 32);
    }
    barrier_init(&seen[0], MULTIPLYING);
    barrier_init(&seen[1], MULTIPLYING);
    fence_barrier_init();
  }
  let_next_grid_begin();
  __syncthreads();

  if (warp == FETCHING) {
    if (lane == 0) {
      const Weights from = {first, second, third, H, KV};
      const CachePolicy once = evict_first();
      auto weights = [&](int box) {
        const int s = (box - mine) % STAGES, tile = box / pieces;
        bring_weights(memory + s * STAGE_BYTES, &full[s], from, once, tile, (box - tile * pieces) * PIECE);
      };
      auto rows = [&](int box) {
        const int s = (box - mine) % STAGES;
        bring_x(memory + s * STAGE_BYTES, &full[s], x_map, box % pieces * PIECE);
      };
      const int ahead = min(mine + STAGES, last);
      for (int box = mine; box < ahead; box++) weights(box);
      wait_for_last_grid();  // weights were there before; x may be its work
      for (int box = mine; box < ahead; box++) rows(box);
      for (int box = ahead; box < last; box++) {
        wait(&empty[(box - mine) % STAGES], (box - mine) / STAGES & 1 ^ 1);
        weights(box);
        rows(box);
      }
    }
  } else if (warp == WEIGHING) {
    if (NORM) {
      float of_row[ROWS / 4] = {};
      for (int box = mine, turn = 0; box < last; box++) {
        const int s = (box - mine) % STAGES, piece = box % pieces;
        const uint4 by = __ldg(reinterpret_cast<const uint4 *>(g + piece * PIECE + lane % 8 * 8));
        wait(&full[s], (box - mine) / STAGES & 1);
        weigh(memory + s * STAGE_BYTES, by, of_row);
        if (piece == pieces - 1 || box == last - 1) {
          wait(&seen[turn % 2], turn / 2 & 1 ^ 1);
          leave_squares(squares + turn % 2 * ROWS, of_row);
          turn++;
        }
        fence_async();  // the tensor cores will read what threads wrote
        arrive(&weighed[s]);
      }
    }
  } else if (warp < MULTIPLYING / 32) {
    wait_for_last_grid();
    const int half = warp / 4, thread = threadIdx.x, p = thread % HALF, first_row = thread / HALF;
    const Behind behind = {residual, cos, sin, position, k_cache, v_cache, room, N, H, KV};
    const long long K = static_cast<long long>(pieces) * PIECE;
    float d[ROWS / 2];
    int box = mine;
    for (int turn = 0; box < last; turn++) {
      const Part part = part_at(cut, box, last);
      for (int piece = part.begin; piece < part.end; piece++, box++) {
        const int s = (box - mine) % STAGES, parity = (box - mine) / STAGES & 1;
        wait(&full[s], parity);
        if (NORM) wait(&weighed[s], parity);
        multiply_box(d, memory + s * STAGE_BYTES, half, piece > part.begin);
        wgmma_wait<1>();  // the box before is done with
        if (piece > part.begin && lane == 0) arrive(&empty[(box - 1 - mine) % STAGES]);
      }
      wgmma_wait<0>(d);
      if (lane == 0) arrive(&empty[(box - 1 - mine) % STAGES]);
      float square[EACH] = {};
      if (NORM) {
#pragma unroll
        for (int i = 0; i < EACH; i++) square[i] = squares[turn % 2 * ROWS + first_row + 4 * i];
        arrive(&seen[turn % 2]);
      }

      leave_sums(sums, d, half);
      named_barrier_wait(FINISHING, MULTIPLYING);
      float low[EACH], high[EACH];
#pragma unroll
      for (int i = 0; i < EACH; i++) {
        low[i] = sums[p * PITCH + first_row + 4 * i];
        high[i] = sums[(p + HALF) * PITCH + first_row + 4 * i];
      }
      bool is_mine = true;
      if (part.end - part.begin < pieces) {
        // Several blocks share this tile: each leaves its part, and the last one to come adds them.
        float *own = parts + (2LL * blockIdx.x + (turn > 0)) * PART;
#pragma unroll
        for (int i = 0; i < EACH; i++) {
          const int m = first_row + 4 * i;
          own[m * 2 * HALF + p] = low[i];
          own[m * 2 * HALF + HALF + p] = high[i];
          if (NORM && p == 0) own[2 * HALF * ROWS + m] = square[i];
        }
        const int from = cut.block_of(part.tile * pieces), to = cut.block_of(part.tile * pieces + pieces - 1);
        __threadfence();
        named_barrier_wait(FINISHING, MULTIPLYING);
        if (thread == 0) before = atomicInc(tickets + part.tile, to - from);
        named_barrier_wait(FINISHING, MULTIPLYING);
        is_mine = before == to - from;
        if (is_mine) {
          __threadfence();
#pragma unroll
          for (int i = 0; i < EACH; i++) low[i] = high[i] = square[i] = 0;
#pragma unroll 4
          for (int block = from; block <= to; block++) {
            const float *of = parts + (2LL * block + (cut.begin(block) < part.tile * pieces)) * PART;
#pragma unroll
            for (int i = 0; i < EACH; i++) {
              const int m = first_row + 4 * i;
              low[i] += __ldcg(of + m * 2 * HALF + p);
              high[i] += __ldcg(of + m * 2 * HALF + HALF + p);
              if (NORM) square[i] += __ldcg(of + 2 * HALF * ROWS + m);
            }
          }
        }
      }
      if (is_mine) {
#pragma unroll
        for (int i = 0; i < EACH; i++) {
          const int m = first_row + 4 * i;
          const float scale = NORM ? rsqrtf(square[i] / K + epsilon) : 1;
          if (m < M) finish<HALF>(behind, y, part.tile, p, m, low[i] * scale, high[i] * scale);
        }
      }
      named_barrier_wait(FINISHING, MULTIPLYING);  // sums, and `before`, may be written again
    }
  }
}
