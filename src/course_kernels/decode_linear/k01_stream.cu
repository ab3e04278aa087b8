// A linear layer of a step of decoding, kernel 1: a stream of weights that never stops, and what stands around the layer.
//
// Contract  problem.py, M <= 32      Launcher  k01_stream.py
// Idea      a lane copies ahead, for itself alone, the very 16 bytes that it will hand to its tensor core: no barrier, no
//           exchange. Weights are the rows of a product, 16 of them at a time, and x, which has few rows, its columns. The
//           first weights are asked for before the last grid has ended: no weight is its work. So memory has something to
//           do while one layer ends and the next begins
// Around    before it the norm of x: a row's 1 / rms is one number, and is multiplied in at the end. Behind it the residual,
//           or the gate, or the rotation of queries and keys, which then go into the cache. Whatever two rows of weights
//           must meet there are rows r and r + 8 of one tile, whose sums the same lane holds
// Cost      each weight crosses memory once. x comes from L2, once for each block
// Limits    Hopper; 32 rows of x. A warp keeps its columns of x in registers for good, so where K is too long for a block
//           several share it, and the last to come adds their parts, in their order
// Source    Frantar et al. 2024, arXiv:2408.11743 (who copies for whom); CUDA C++ Programming Guide, programmatic dependent
//           launch; the ticket: CUDA samples, threadFenceReduction
#include "asynchronous_copy.cuh"
#include "hopper/warpgroup.cuh"
#include "matrix_instructions.cuh"

// Of the launcher: NUMBER (Bf16 or Fp16), EIGHTS (times 8 rows of x), WARPS (of a block), STAGES (pieces of 64 columns that
// a warp copies ahead), HELD (pieces whose x a warp keeps), NORM (0 or 1), BEHIND, and HEAD, numbers of a head.
enum { NOTHING, ADD, GATE, ROPE };
constexpr int WARP = 32;
constexpr int THREADS = WARPS * WARP;
constexpr int OF_EIGHT = 4 * WARP;       // sums: 16 rows of weights times 8 of x
constexpr int PART = OF_EIGHT + 8;       // and the squares of those rows of x
constexpr int PIECE = 64;                // columns
constexpr bool HALF = sizeof(NUMBER::Narrow) == 2;
using Narrow = unsigned short;

struct alignas(16) Stage {
  uint4 numbers[2][2][WARP];  // of each half of a piece: rows r and r + 8
};

struct Weights {
  const Narrow *first, *second, *third;  // GATE: gate and up; ROPE: of queries, keys and values
  int H, KV;
};

// Where the rows of a lane begin.
struct Rows {
  const Narrow *low, *high;
};

__device__ inline Rows rows_of(const Weights &w, int tile, int r, long long K) {
  if (BEHIND == GATE) {
    const long long row = (tile * 8LL + r) * K;
    return {w.first + row, w.second + row};
  }
  if (BEHIND == ROPE) {
    const int head = tile / (HEAD / 16), pair = tile % (HEAD / 16) * 8 + r;
    const Narrow *of = head < w.H ? w.first : head < w.H + w.KV ? w.second : w.third;
    const int own = head < w.H ? head : (head - w.H) % w.KV;
    const Narrow *low = of + (static_cast<long long>(own) * HEAD + pair) * K;
    return {low, low + HEAD / 2 * K};
  }
  const Narrow *low = w.first + (tile * 16LL + r) * K;
  return {low, low + 8 * K};
}

// 16 bytes that the last grid may have written.
__device__ inline uint4 of_the_last_grid(const void *from) {
  uint4 x;
  asm volatile("ld.global.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(x.x), "=r"(x.y), "=r"(x.z), "=r"(x.w)
               : "l"(from)
               : "memory");
  return x;
}

__device__ inline Narrow narrow(float x) { return static_cast<Narrow>(NUMBER::pair(x, 0.0f)); }
