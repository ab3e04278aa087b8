// Matrix multiply, kernel 3, in WGSL: a workgroup carries a tile of A and a tile of B into its own memory, and all its
// threads eat from there.
//
// Contract  problem.py      Sister  k03_shared_tiles.cu
// Idea      K is walked in steps of 16; in each step the 256 threads fetch 16 x 16 elements of A and of B, one of each
//           a thread, and every fetched element is used 16 times
// Against   k02_coalesced, which asks the caches for every operand of every multiply-add
// Cost      the caches are asked 16 times less; two elements out of workgroup memory for each multiply-add
// Limits    the sister's tile is 32 x 32, with 1024 threads: WGSL promises 256
// Next      k05_register_tile.wgsl: a thread that computes several elements reads less for each
// Source    S. Boehm 2022, How to optimize a CUDA matmul kernel, kernel 3

const TILE: u32 = 16;

struct Sizes { M: u32, N: u32, K: u32 }

@group(0) @binding(0) var<storage, read> A: array<f32>;        // [M, K]
@group(0) @binding(1) var<storage, read> B: array<f32>;        // [K, N]
@group(0) @binding(2) var<storage, read_write> C: array<f32>;  // [M, N]
@group(0) @binding(3) var<uniform> sizes: Sizes;

var<workgroup> a_tile: array<array<f32, TILE>, TILE>;  // [m, k]
var<workgroup> b_tile: array<array<f32, TILE>, TILE>;  // [k, n]

// grid: (ceil(N / TILE), ceil(M / TILE))
@compute @workgroup_size(TILE, TILE)
fn sgemm_shared_tiles(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_id) thread: vec3<u32>) {
  let M = sizes.M;
  let N = sizes.N;
  let K = sizes.K;
  let row = thread.y;
  let column = thread.x;
  let m = group.y * TILE + row;
  let n = group.x * TILE + column;

  var sum = 0.0;
  for (var k0 = 0u; k0 < K; k0 += TILE) {
    // Past an edge a zero is put on the tray: it adds nothing to any sum.
    let k = k0 + row;
    var a = 0.0;
    var b = 0.0;
    if (m < M && k0 + column < K) { a = A[m * K + k0 + column]; }
    if (k < K && n < N) { b = B[k * N + n]; }
    a_tile[row][column] = a;
    b_tile[row][column] = b;
    workgroupBarrier();  // nobody eats before the tray is full
    for (var i = 0u; i < TILE; i++) { sum += a_tile[row][i] * b_tile[i][column]; }
    workgroupBarrier();  // nobody refills before all have eaten
  }
  if (m < M && n < N) { C[m * N + n] = sum; }
}
