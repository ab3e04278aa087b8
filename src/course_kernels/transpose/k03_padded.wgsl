// Transpose, kernel 3, in WGSL: one word of padding takes the columns apart.
//
// Contract  problem.py      Sister  k03_padded.cu
// Idea      a row of the tile is 33 words long, so the words of a column lie in 32 different banks, where there are 32
// Against   k02_tiled, where a row is 32 words long and a column may lie in one bank
// Cost      reads and writes every element once; TILE words of workgroup memory that hold nothing
// Limits    WGSL says nothing of banks: on a GPU with others, or with none, the padding is for nothing
// Source    Ruetsch & Micikevicius, Optimizing Matrix Transpose in CUDA, NVIDIA 2009

const TILE: u32 = 32;
const ROWS: u32 = 8;  // rows of threads in a workgroup: a thread moves TILE / ROWS = 4 elements

struct Sizes { M: u32, N: u32 }

@group(0) @binding(0) var<storage, read> x: array<f32>;        // [M, N]
@group(0) @binding(1) var<storage, read_write> y: array<f32>;  // [N, M]
@group(0) @binding(2) var<uniform> sizes: Sizes;

var<workgroup> tile: array<array<f32, TILE + 1>, TILE>;  // word (row, column) in bank (33 * row + column) % 32

// grid: one workgroup a tile, ceil(M / TILE) * ceil(N / TILE)
@compute @workgroup_size(TILE, ROWS)
fn transpose_padded(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_id) thread: vec3<u32>) {
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
