// Matrix multiply, kernel 4: Hopper's own instruction. Four warps multiply, straight from shared memory.
//
// Contract  problem.py      Launcher  k04_wgmma.py      Instructions  wgmma.cuh
// Idea      wgmma multiplies 64 x 16 by 16 x 256 at once. Its operands stay in shared memory, told by descriptors,
//           and it works on its own: while it does, the threads bring the tiles that come later
// Against   k03_mma_sync, whose warps carry every operand into registers before they multiply it
// Cost      a block reads 128 rows of A and 256 columns of B to make 128 x 256 of C
// Limits    Hopper (sm_90) only. Every thread copies, every thread waits: no warp has a role of its own, the copy
//           engine (TMA) rests, and writing C hides behind nothing. Rows not a multiple of 16 bytes: no cp.async
// Next      W2 gives the warps roles
// Source    PTX ISA, wgmma.mma_async and its matrix descriptors

#include "asynchronous_copy.cuh"
#include "wgmma.cuh"

using Half = unsigned short;  // 16 bits that nobody here looks into

// Whether K and N are multiples of 8, and A, B and C begin at a multiple of 16 bytes: then every row does.
#ifndef WHOLE
#define WHOLE 1
#endif

constexpr int BM = 128;  // block tile: two warpgroups of 64 rows
constexpr int BN = 256;  // the widest B that one instruction takes: a row of A in shared memory is read least often
constexpr int BK = 64;   // 128 bytes of A's row: one row of the swizzle
constexpr int STAGES = 4;  // pairs of tiles in shared memory: two arriving, one being multiplied, one just finished
constexpr int GROUP = 8;   // rows of tiles that blocks share which run together
constexpr int THREADS = 256;

// A tile lies in panels, 64 elements (128 bytes) wide: one for A, four for B.
constexpr unsigned ROW_BYTES = 128;
constexpr unsigned A_BYTES = BM * ROW_BYTES;
constexpr unsigned PANEL_BYTES = BK * ROW_BYTES;
constexpr unsigned STAGE_BYTES = A_BYTES + BN / 64 * PANEL_BYTES;

// Bring a panel: ROWS rows of X [rows, cols] from (first_row, first_col) on, zeros past the edges. Piece `chunk` of
// 16 bytes lies at chunk XOR row % 8: the swizzle that the descriptors promise. So eight pieces one above the other
// lie in all 32 banks.
template <int ROWS>
__device__ inline void fetch(char *panel, const Half *X, int rows, int cols, int first_row, int first_col) {
#pragma unroll
  for (int i = 0; i < ROWS * 8 / THREADS; i++) {
    const int row = (threadIdx.x + i * THREADS) / 8, chunk = threadIdx.x % 8;
    char *to = panel + row * ROW_BYTES + (chunk ^ row % 8) * 16;
    const int r = first_row + row, c = first_col + chunk * 8;
    const int left = r < rows ? cols - c : 0;  // elements of this row, from here on
    const Half *from = X + (left > 0 ? static_cast<long long>(r) * cols + c : 0);
    if (WHOLE) {
      copy_16_bytes(to, from, left > 0 ? 16 : 0);
    } else {
#pragma unroll
      for (int j = 0; j < 8; j++) reinterpret_cast<Half *>(to)[j] = j < left ? from[j] : 0;
    }
  }
}

// grid: ceil(M / BM) * ceil(N / BN)      block: THREADS      dynamic shared memory: STAGES * STAGE_BYTES + 1024
extern "C" __global__ __launch_bounds__(THREADS, 1) void gemm_wgmma(const Half *A,  // [M, K]
                                                                    const Half *B,  // [K, N]
                                                                    Half *C,        // [M, N]
                                                                    int M, int N, int K) {
  extern __shared__ char memory[];
  // The swizzle looks at address bits 7 to 9, so a panel must begin where they are zero.
  char *shared = memory + (1024 - shared_address(memory) % 1024) % 1024;
  const int tiles = (K + BK - 1) / BK;
  const int warpgroup = threadIdx.x / 128;

  // Blocks that run together share GROUP strips of A, so that these and the strips of B they meet stay in L2.
  const int tiles_m = (M + BM - 1) / BM, tiles_n = (N + BN - 1) / BN;
  const int first_of_group = blockIdx.x / (GROUP * tiles_n) * GROUP;
  const int place = blockIdx.x % (GROUP * tiles_n), height = min(GROUP, tiles_m - first_of_group);
  const int first_m = (first_of_group + place % height) * BM, first_n = place / height * BN;

  // Past the last tile these are zeros, for nobody: a branch here would make the compiler wait for the products.
  auto bring = [&](int tile) {
    char *a = shared + tile % STAGES * STAGE_BYTES, *b = a + A_BYTES;
    fetch<BM>(a, A, M, K, first_m, tile * BK);
#pragma unroll
    for (int p = 0; p < BN / 64; p++) {
      fetch<BK>(b + p * PANEL_BYTES, B, K, N, tile * BK, first_n + p * 64);
    }
    close_group();
  };

  float d[128] = {};  // this thread's part of C
  for (int tile = 0; tile < STAGES - 2; tile++) bring(tile);

  // region loop
  for (int tile = 0; tile < tiles; tile++) {
    wait_for_all_but<STAGES - 3>();  // my pieces of this tile are there
    fence_for_tensor_cores();        // also for the tensor cores
    __syncthreads();                 // and everybody's. Nobody multiplies the tile before the last one any more

    const unsigned stage = shared_address(shared) + tile % STAGES * STAGE_BYTES;
    const unsigned a = stage + warpgroup * 64 * ROW_BYTES, b = stage + A_BYTES;
    wgmma_fence();
#pragma unroll
    for (int k = 0; k < BK; k += 16) {
      wgmma_64x256x16(d, descriptor(a + k * sizeof(Half), 16, 8 * ROW_BYTES),      // 16 columns on
                      descriptor(b + k * ROW_BYTES, PANEL_BYTES, 8 * ROW_BYTES));  // 16 rows on
    }
    wgmma_commit();

    bring(tile + STAGES - 2);  // in the place of the tile before the last one
    wgmma_wait<1>(d);          // the last tile is done; this one goes on while we go round
  }
  // endregion
  wgmma_wait<0>(d);
  wait_for_all_but<0>();  // no copy may outlive the block

  // A warp has 16 rows. Of every 8 columns a thread holds two, in two rows: d[4 j], d[4 j + 1] and, eight rows below,
  // d[4 j + 2], d[4 j + 3].
  const int lane = threadIdx.x % 32;
#pragma unroll
  for (int half = 0; half < 2; half++) {
    const long long m = first_m + threadIdx.x / 32 * 16 + half * 8 + lane / 4;
#pragma unroll
    for (int j = 0; j < BN / 8; j++) {
      const int n = first_n + j * 8 + lane % 4 * 2;
      const unsigned both = pack(d[4 * j + 2 * half], d[4 * j + 2 * half + 1]);
      if (m >= M || n >= N) continue;
      if (WHOLE) {
        *reinterpret_cast<unsigned *>(C + m * N + n) = both;
      } else {
        C[m * N + n] = both & 0xffff;
        if (n + 1 < N) C[m * N + n + 1] = both >> 16;
      }
    }
  }
}
