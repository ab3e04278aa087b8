// Matrix multiply, kernel 5, in WGSL: a thread computes a square of eight by eight elements.
//
// Contract  problem.py      Sister  k05_register_tile.cu
// Idea      eight elements of A and eight of B, once in registers, make 64 products: an outer product. A quarter of an
//           element out of workgroup memory for each multiply-add
// Against   k03_shared_tiles: two elements for each
// Cost      a block tile of 128 x 128; 64 sums in the registers of every thread
// Limits    nothing in WGSL says that a loop is unrolled: a compiler that leaves it may keep the sums in memory
// Next      k06_vectorised.wgsl: sixteen bytes in every access
// Source    S. Boehm 2022, How to optimize a CUDA matmul kernel, kernel 5

const BM: u32 = 128;  // block tile, and the step along K
const BN: u32 = 128;
const BK: u32 = 8;
const TM: u32 = 8;  // register tile
const TN: u32 = 8;
const THREADS: u32 = BM * BN / (TM * TN);  // 256

struct Sizes { M: u32, N: u32, K: u32 }

@group(0) @binding(0) var<storage, read> A: array<f32>;        // [M, K]
@group(0) @binding(1) var<storage, read> B: array<f32>;        // [K, N]
@group(0) @binding(2) var<storage, read_write> C: array<f32>;  // [M, N]
@group(0) @binding(3) var<uniform> sizes: Sizes;

var<workgroup> a_tile: array<array<f32, BK>, BM>;  // [m, k]
var<workgroup> b_tile: array<array<f32, BN>, BK>;  // [k, n]

// grid: (ceil(N / BN), ceil(M / BM))
@compute @workgroup_size(THREADS)
fn sgemm_register_tile(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_id) thread: vec3<u32>) {
  let M = sizes.M;
  let N = sizes.N;
  let K = sizes.K;
  let m0 = group.y * BM;
  let n0 = group.x * BN;
  let row = thread.x / (BN / TN) * TM;
  let column = thread.x % (BN / TN) * TN;

  var sums: array<array<f32, TN>, TM>;
  for (var k0 = 0u; k0 < K; k0 += BK) {
    for (var v = 0u; v < BM * BK / THREADS; v++) {
      let e = thread.x + v * THREADS;
      let m = m0 + e / BK;
      let k = k0 + e % BK;
      var a = 0.0;
      if (m < M && k < K) { a = A[m * K + k]; }
      a_tile[e / BK][e % BK] = a;
    }
    for (var v = 0u; v < BK * BN / THREADS; v++) {
      let e = thread.x + v * THREADS;
      let k = k0 + e / BN;
      let n = n0 + e % BN;
      var b = 0.0;
      if (k < K && n < N) { b = B[k * N + n]; }
      b_tile[e / BN][e % BN] = b;
    }
    workgroupBarrier();
    for (var i = 0u; i < BK; i++) {
      var a: array<f32, TM>;
      var b: array<f32, TN>;
      for (var c = 0u; c < TN; c++) { b[c] = b_tile[i][column + c]; }
      for (var r = 0u; r < TM; r++) { a[r] = a_tile[row + r][i]; }
      for (var r = 0u; r < TM; r++) {
        for (var c = 0u; c < TN; c++) { sums[r][c] += a[r] * b[c]; }
      }
    }
    workgroupBarrier();
  }

  for (var r = 0u; r < TM; r++) {
    for (var c = 0u; c < TN; c++) {
      let m = m0 + row + r;
      let n = n0 + column + c;
      if (m < M && n < N) { C[m * N + n] = sums[r][c]; }
    }
  }
}
