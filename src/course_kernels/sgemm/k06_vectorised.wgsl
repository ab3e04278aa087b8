// Matrix multiply, kernel 6, in WGSL: sixteen bytes in every access.
//
// Contract  problem.py, N and K divisible by 4      Sister  k06_vectorised.cu
// Idea      four neighbours move in one access: from A and B, into and out of workgroup memory, and into C. A's tile
//           lies turned round, so that the rows of a thread are neighbours there
// Against   k05_register_tile, which fetches and stores element by element
// Cost      a quarter of the accesses that fetch and store
// Limits    A's tile stays single elements: four threads would each write one component of a vector, and in WGSL such
//           a write may touch the whole of it. Other sizes need k05: one array cannot be both, vectors and elements
// Source    S. Boehm 2022, How to optimize a CUDA matmul kernel, kernel 6

const BM: u32 = 128;  // block tile, and the step along K
const BN: u32 = 128;
const BK: u32 = 8;
const TM: u32 = 8;  // register tile
const TN: u32 = 8;
const THREADS: u32 = BM * BN / (TM * TN);  // 256

struct Sizes { M: u32, N: u32, K: u32 }

@group(0) @binding(0) var<storage, read> A: array<vec4<f32>>;        // [M, K / 4]
@group(0) @binding(1) var<storage, read> B: array<vec4<f32>>;        // [K, N / 4]
@group(0) @binding(2) var<storage, read_write> C: array<vec4<f32>>;  // [M, N / 4]
@group(0) @binding(3) var<uniform> sizes: Sizes;

var<workgroup> a_tile: array<array<f32, BM>, BK>;            // [k, m]
var<workgroup> b_tile: array<array<vec4<f32>, BN / 4>, BK>;  // [k, n / 4]

// grid: (ceil(N / BN), ceil(M / BM))
@compute @workgroup_size(THREADS)
fn sgemm_vectorised(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_id) thread: vec3<u32>) {
  let M = sizes.M;
  let N = sizes.N;
  let K = sizes.K;
  let m0 = group.y * BM;
  let n0 = group.x * BN;
  let row = thread.x / (BN / TN) * TM;
  let column = thread.x % (BN / TN) * TN;
  let a_row = thread.x / (BK / 4);
  let a_k = thread.x % (BK / 4) * 4;
  let b_k = thread.x / (BN / 4);
  let b_column = thread.x % (BN / 4) * 4;

  var sums: array<array<vec4<f32>, TN / 4>, TM>;
  for (var k0 = 0u; k0 < K; k0 += BK) {
    let m = m0 + a_row;
    let k = k0 + b_k;
    let n = n0 + b_column;
    var a = vec4<f32>();
    var b = vec4<f32>();
    if (m < M && k0 + a_k < K) { a = A[(m * K + k0 + a_k) / 4]; }
    if (k < K && n < N) { b = B[(k * N + n) / 4]; }
    a_tile[a_k + 0][a_row] = a.x;
    a_tile[a_k + 1][a_row] = a.y;
    a_tile[a_k + 2][a_row] = a.z;
    a_tile[a_k + 3][a_row] = a.w;
    b_tile[b_k][b_column / 4] = b;
    workgroupBarrier();
    for (var i = 0u; i < BK; i++) {
      var b: array<vec4<f32>, TN / 4>;
      for (var c = 0u; c < TN / 4; c++) { b[c] = b_tile[i][column / 4 + c]; }
      for (var r = 0u; r < TM; r++) {
        let a = a_tile[i][row + r];
        for (var c = 0u; c < TN / 4; c++) { sums[r][c] += a * b[c]; }
      }
    }
    workgroupBarrier();
  }

  for (var r = 0u; r < TM; r++) {
    for (var c = 0u; c < TN / 4; c++) {
      let m = m0 + row + r;
      let n = n0 + column + 4 * c;
      if (m < M && n < N) { C[(m * N + n) / 4] = sums[r][c]; }
    }
  }
}
