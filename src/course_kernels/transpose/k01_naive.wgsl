// Transpose, kernel 1, in WGSL: read an element, write it where it belongs.
//
// Contract  problem.py      Sister  k01_naive.cu
// Idea      a thread finds its element's place in y by swapping the two indices
// Cost      reads and writes every element once; but what neighbouring threads write lies in different rows of y, so
//           every store touches as many pieces of memory as it has threads
// Next      k02_tiled.wgsl, which turns the tile round on the chip
// Source    Ruetsch & Micikevicius, Optimizing Matrix Transpose in CUDA, NVIDIA 2009

const TILE: u32 = 32;
const ROWS: u32 = 8;  // rows of threads in a workgroup: a thread moves TILE / ROWS = 4 elements

struct Sizes { M: u32, N: u32 }

@group(0) @binding(0) var<storage, read> x: array<f32>;        // [M, N]
@group(0) @binding(1) var<storage, read_write> y: array<f32>;  // [N, M]
@group(0) @binding(2) var<uniform> sizes: Sizes;

// grid: one workgroup a tile, ceil(M / TILE) * ceil(N / TILE)
@compute @workgroup_size(TILE, ROWS)
fn transpose_naive(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_id) thread: vec3<u32>) {
  let M = sizes.M;
  let N = sizes.N;
  let tiles_n = (N + TILE - 1) / TILE;  // tiles side by side
  let first_m = group.x / tiles_n * TILE;
  let first_n = group.x % tiles_n * TILE;

  // Neighbouring threads have neighbouring n: neighbours in x, M elements apart in y.
  for (var i = 0u; i < TILE; i += ROWS) {
    let row = thread.y + i;
    let m = first_m + row;
    let n = first_n + thread.x;
    if (m < M && n < N) { y[n * M + m] = x[m * N + n]; }
  }
}
