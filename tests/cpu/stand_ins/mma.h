// The CPU's nvcuda::wmma: the last lane of a warp holds a fragment and does the work of all 32,
// when the others are already past it.
#pragma once
#include "cuda_bf16.h"

namespace nvcuda::wmma {
struct matrix_a;
struct matrix_b;
struct accumulator;
struct row_major;
struct col_major;
enum layout_t { mem_row_major, mem_col_major };

inline bool idle() { return fibers::current % 32 != 31; }

template <class Use, int M, int N, int K, class Number, class Layout = row_major>
struct fragment {
  static constexpr int ROWS = std::is_same_v<Use, matrix_b> ? K : M, COLUMNS = std::is_same_v<Use, matrix_a> ? K : N;
  float numbers[ROWS][COLUMNS];
};

template <class F>
void fill_fragment(F &f, float x) {
  for (auto &row : f.numbers)
    for (auto &number : row) number = x;
}

template <class Use, int M, int N, int K, class Number, class Layout>
void load_matrix_sync(fragment<Use, M, N, K, Number, Layout> &f, const Number *from, unsigned pitch) {
  if (reinterpret_cast<std::size_t>(from) % 32) fibers::blame("an address of load_matrix_sync, no multiple of 32");
  if (pitch % 8) fibers::blame("rows that load_matrix_sync takes are no multiple of 8 numbers apart");
  __syncwarp();
  constexpr bool along_rows = std::is_same_v<Layout, row_major>;
  for (int r = 0; r < f.ROWS && !idle(); r++)
    for (int c = 0; c < f.COLUMNS; c++)
      f.numbers[r][c] = static_cast<float>(from[along_rows ? r * pitch + c : c * pitch + r]);
  __syncwarp();
}

template <class Number, int M, int N, int K, class LayoutA, class LayoutB>
void mma_sync(fragment<accumulator, M, N, K, float> &d, const fragment<matrix_a, M, N, K, Number, LayoutA> &a,
              const fragment<matrix_b, M, N, K, Number, LayoutB> &b, const fragment<accumulator, M, N, K, float> &c) {
  for (int i = 0; i < M && !idle(); i++)
    for (int j = 0; j < N; j++) {
      float sum = c.numbers[i][j];
      for (int k = 0; k < K; k++) sum += a.numbers[i][k] * b.numbers[k][j];
      d.numbers[i][j] = sum;
    }
}

template <int M, int N, int K>
void store_matrix_sync(float *to, const fragment<accumulator, M, N, K, float> &f, unsigned pitch, layout_t layout) {
  __syncwarp();
  for (int r = 0; r < M && !idle(); r++)
    for (int c = 0; c < N; c++) to[layout == mem_row_major ? r * pitch + c : c * pitch + r] = f.numbers[r][c];
}
}  // namespace nvcuda::wmma
