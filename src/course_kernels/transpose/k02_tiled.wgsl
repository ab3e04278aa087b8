// Transpose, kernel 2, in WGSL: a tile is turned round in workgroup memory.
//
// Contract  problem.py      Sister  k02_tiled.cu
// Idea      a workgroup reads its tile row by row into its own memory and writes it from there column by column: now
//           neighbouring threads are neighbours in x when they read and neighbours in y when they write
// Against   k01_naive, whose threads are neighbours in x only
// Cost      reads and writes every element once; where the memory of a workgroup has banks, a column of the tile may
//           lie in one of them
// Next      k03_padded.wgsl, which spreads the columns over the banks
// Source    Ruetsch & Micikevicius, Optimizing Matrix Transpose in CUDA, NVIDIA 2009

const TILE: u32 = 32;
const ROWS: u32 = 8;  // rows of threads in a workgroup: a thread moves TILE / ROWS = 4 elements

struct Sizes { M: u32, N: u32 }

@group(0) @binding(0) var<storage, read> x: array<f32>;        // [M, N]
@group(0) @binding(1) var<storage, read_write> y: array<f32>;  // [N, M]
@group(0) @binding(2) var<uniform> sizes: Sizes;

var<workgroup> tile: array<array<f32, TILE>, TILE>;

// grid: one workgroup a tile, ceil(M / TILE) * ceil(N / TILE)
@compute @workgroup_size(TILE, ROWS)
fn transpose_tiled(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_id) thread: vec3<u32>) {
  let M = sizes.M;
  let N = sizes.N;
  let tiles_n = (N + TILE - 1) / TILE;  // tiles side by side
  let first_m = group.x / tiles_n * TILE;
  let first_n = group.x % tiles_n * TILE;

  for (var i = 0u; i < TILE; i += ROWS) {
    let row = thread.y + i;
    let m = first_m + row;
    let n = first_n + thread.x;
    if (m < M && n < N) { tile[row][thread.x] = x[m * N + n]; }
  }
  workgroupBarrier();  // an element is written by another thread than the one that read it

  // Here thread.x counts along m, and the rows are rows of y.
  for (var i = 0u; i < TILE; i += ROWS) {
    let row = thread.y + i;
    let m = first_m + thread.x;
    let n = first_n + row;
    if (m < M && n < N) { y[n * M + m] = tile[thread.x][row]; }
  }
}
