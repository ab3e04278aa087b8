// Matrix multiply, kernel 2, in WGSL: the same work, handed out along the rows.
//
// Contract  problem.py      Sister  k02_coalesced.cu
// Idea      thread.x counts columns, so 32 neighbouring threads are 32 neighbours in a row of C
// Against   k01_naive, whose neighbours walk down a column
// Cost      two loads and one multiply-add, K times over, and every element is fetched again by every thread that
//           needs it
// Next      k03_shared_tiles.wgsl, where a workgroup fetches a tile once, for all its threads
// Source    S. Boehm 2022, How to optimize a CUDA matmul kernel, kernel 2

const WIDE: u32 = 32;  // threads of a workgroup along x, and HIGH along y: 256 together, more is not promised
const HIGH: u32 = 8;

struct Sizes { M: u32, N: u32, K: u32 }

@group(0) @binding(0) var<storage, read> A: array<f32>;        // [M, K]
@group(0) @binding(1) var<storage, read> B: array<f32>;        // [K, N]
@group(0) @binding(2) var<storage, read_write> C: array<f32>;  // [M, N]
@group(0) @binding(3) var<uniform> sizes: Sizes;

// grid: (ceil(N / WIDE), ceil(M / HIGH))
@compute @workgroup_size(WIDE, HIGH)
fn sgemm_coalesced(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_id) thread: vec3<u32>) {
  let m = group.y * HIGH + thread.y;
  let n = group.x * WIDE + thread.x;
  if (m >= sizes.M || n >= sizes.N) { return; }  // the last workgroups reach past the edges

  var sum = 0.0;
  for (var k = 0u; k < sizes.K; k++) { sum += A[m * sizes.K + k] * B[k * sizes.N + n]; }
  C[m * sizes.N + n] = sum;
}
