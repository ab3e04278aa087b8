// What hopper_tile.cu does not use of cuda/hopper/: other operands, other swizzles, other copies. One warpgroup each.

#include "hopper/tma.cuh"
#include "hopper/warpgroup.cuh"

#ifndef TYPE
#define TYPE Bf16x16
#define BYTES 2  // of a number
#define A_MN 0   // how A and B lie
#define B_MN 0
#define PANEL_ROW 128  // bytes
#define WIDE 80        // columns of B
#define DEEP 128       // numbers along k
#endif

constexpr int N = WIDE, K = DEEP, ROW_BYTES = PANEL_ROW, ROW = ROW_BYTES / BYTES;  // numbers in a row of a panel

// A tile of `rows` of m or n and K of k, as panels one behind the other.
__device__ inline void load_panels(char *to, const TensorMap &map, Barrier *b, int rows, bool mn) {
  for (int p = 0; p < (mn ? rows : K) / ROW; p++) load_tile(to + p * (mn ? K : rows) * ROW_BYTES, map, b, p * ROW, 0);
}

// Its part for the step-th instruction along k.
__device__ inline Descriptor part(const char *tile, int step, int rows, bool mn) {
  const unsigned at = address_in_shared(tile), byte = step * 32;
  if (mn) return advance(mn_major<ROW_BYTES>(at, K * ROW_BYTES), step * 16 * ROW_BYTES);
  return advance(k_major<ROW_BYTES>(at + byte / ROW_BYTES * rows * ROW_BYTES), byte % ROW_BYTES);
}

template <int WIDTH>
__device__ inline void write(float *C, const float (&d)[WIDTH / 2]) {
  const int row = threadIdx.x / 32 * 16 + threadIdx.x % 32 / 4, column = threadIdx.x % 4 * 2;
#pragma unroll
  for (int i = 0; i < WIDTH / 2; i++) C[(row + i / 2 % 2 * 8) * WIDTH + column + i / 4 * 8 + i % 2] = d[i];
}

__device__ inline Barrier *one_barrier(char *at) {
  Barrier *b = reinterpret_cast<Barrier *>(at);
  if (threadIdx.x == 0) {
    barrier_init(b, 1);
    fence_barrier_init();
  }
  __syncthreads();
  return b;
}

constexpr Major A_LIES = A_MN ? Major::mn : Major::k, B_LIES = B_MN ? Major::mn : Major::k;

// grid: 1      block: 128      dynamic shared memory: (64 + N) * K * BYTES + 64
extern "C" __global__ __launch_bounds__(128, 1) void one_product(const __grid_constant__ TensorMap a_map,
                                                                 const __grid_constant__ TensorMap b_map,
                                                                 float *C) {  // [64, N]
  extern __shared__ __align__(1024) char memory[];
  char *a = memory, *b = a + 64 * K * BYTES;
  Barrier *full = one_barrier(b + N * K * BYTES);
  if (threadIdx.x == 0) {
    arrive_and_expect_bytes(full, (64 + N) * K * BYTES);
    load_panels(a, a_map, full, 64, A_MN);
    load_panels(b, b_map, full, N, B_MN);
  }
  wait(full, 0);
  float d[N / 2];
  wgmma_fence(d);
#pragma unroll
  for (int i = 0; i < K * BYTES / 32; i++) {
    products<N, TYPE, B_LIES, A_LIES>(d, part(a, i, 64, A_MN), part(b, i, N, B_MN), i > 0);
  }
  wgmma_commit();
  wgmma_wait<0>(d);
  write<N>(C, d);
}

// Attention without its softmax: O = 2^(Q @ K^T) @ V, all of them [64, 64]; the first sums are the second A.
// grid: 1      block: 128      dynamic shared memory: 3 * 8192 + 64
extern "C" __global__ __launch_bounds__(128, 1) void chained(const __grid_constant__ TensorMap q_map,
                                                             const __grid_constant__ TensorMap k_map,
                                                             const __grid_constant__ TensorMap v_map,
                                                             float *O) {  // [64, 64]
  extern __shared__ __align__(1024) char memory[];
  Barrier *full = one_barrier(memory + 3 * 8192);
  if (threadIdx.x == 0) {
    expect_bytes(full, 8192);
    load_tile(memory, q_map, full, 0, 0);
    load_tile(memory + 8192, k_map, full, 0, 0);
    load_tile(memory + 2 * 8192, v_map, full, 0, 0);
    arrive_and_expect_bytes(full, 2 * 8192);
  }
  wait(full, 0);
  const unsigned q = address_in_shared(memory), k = q + 8192, v = k + 8192;
  float s[32], o[32];
  wgmma_fence(s);
#pragma unroll
  for (int i = 0; i < 4; i++) products<64>(s, advance(k_major(q), 32 * i), advance(k_major(k), 32 * i), i > 0);
  wgmma_commit();
  wgmma_wait<0>(s);
  unsigned p[4][4];
#pragma unroll
  for (int i = 0; i < 32; i++) s[i] = power_of_2(s[i]);
#pragma unroll
  for (int i = 0; i < 4; i++) operand(p[i], s, i);
  wgmma_fence(o);
#pragma unroll
  for (int i = 0; i < 4; i++) {
    products<64, Bf16x16, Major::mn>(o, p[i], advance(mn_major(v, 8192), i * 16 * 128), i > 0);
  }
  wgmma_commit();
  wgmma_wait<0>(o);
  write<64>(O, o);
}

// Copies of three and five dimensions, sums in global memory, copies without a map, a tile transposed on its way.
// grid: 1      block: 128      dynamic shared memory: 4 * 8192 + 64
extern "C" __global__ __launch_bounds__(128, 1) void moves(const __grid_constant__ TensorMap x_map,  // box [2, 4, 8]
                                                           const __grid_constant__ TensorMap y_map,  // the same box
                                                           const __grid_constant__ TensorMap z_map,  // [1, 2, 1, 4, 8]
                                                           const __grid_constant__ TensorMap t_map,  // box [16, 16]
                                                           const float *from, float *to) {           // [64]
  extern __shared__ __align__(1024) char memory[];
  char *x = memory, *z = memory + 1024, *bytes = memory + 2048, *square = memory + 3072;
  Barrier *full = one_barrier(memory + 4096);
  if (threadIdx.x == 0) {
    arrive_and_expect_bytes(full, 256 + 256 + 256);
    load_tile(x, x_map, full, 4, -1, 1);
    load_tile(z, z_map, full, evict_last(), 0, 3, 1, 0, 1);
    load_bytes(bytes, from, 256, full);
    wait(full, 0);
    add_tile(y_map, x, 0, 0, 0);
    add_tile(y_map, z, 0, 0, 0);
    store_bytes(to, bytes, 128);
    add_floats(to + 32, reinterpret_cast<const float *>(bytes) + 32, 128);
    close_bulk_group();
    wait_until_stored<0>();
    barrier_inval(full);
  }
  __syncthreads();
  if (threadIdx.x >= 64) {  // the lower half writes, the upper one only says that it has come
    named_barrier_arrive(3, 128);
    return;
  }
  // A warp's four matrices: number 100 * row + column of 16 x 16, transposed on its way.
  if (threadIdx.x < 32) {
    unsigned held[4];
    const int lane = threadIdx.x, row = lane / 4, column = lane % 4 * 2;
    for (int i = 0; i < 4; i++) {
      const float number = 100 * (row + i % 2 * 8) + column + i / 2 * 8;
      held[i] = rounded_pair<F16x16>(number, number + 1);
    }
    store_matrices_transposed(square + (lane % 8 + lane / 16 * 8) * 32 + lane / 8 % 2 * 16, held);
    fence_async();
  }
  named_barrier_wait(3, 128);
  if (threadIdx.x == 0) {
    store_tile(t_map, square, 0, 0);
    close_bulk_group();
    wait_until_read<0>();
  }
}
