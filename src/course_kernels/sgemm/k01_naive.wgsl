// Matrix multiply, kernel 1, in WGSL: one thread computes one element of C, and neighbours walk down a column.
//
// Contract  problem.py      Sister  k01_naive.cu
// Idea      the formula as it stands: a thread picks an m and an n and adds up K products
// Cost      thread.x counts rows, so neighbouring threads read different rows of A and write different rows of C:
//           every access to them is scattered
// Next      k02_coalesced.wgsl, the same kernel with thread.x along a row
// Source    S. Boehm 2022, How to optimize a CUDA matmul kernel, kernel 1

const WIDE: u32 = 32;  // threads of a workgroup along x, and HIGH along y: 256 together, more is not promised
const HIGH: u32 = 8;

struct Sizes { M: u32, N: u32, K: u32 }

@group(0) @binding(0) var<storage, read> A: array<f32>;        // [M, K]
@group(0) @binding(1) var<storage, read> B: array<f32>;        // [K, N]
@group(0) @binding(2) var<storage, read_write> C: array<f32>;  // [M, N]
@group(0) @binding(3) var<uniform> sizes: Sizes;

// grid: (ceil(M / WIDE), ceil(N / HIGH))
@compute @workgroup_size(WIDE, HIGH)
fn sgemm_naive(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_id) thread: vec3<u32>) {
  let m = group.x * WIDE + thread.x;
  let n = group.y * HIGH + thread.y;
  if (m >= sizes.M || n >= sizes.N) { return; }  // the last workgroups reach past the edges

  var sum = 0.0;
  for (var k = 0u; k < sizes.K; k++) { sum += A[m * sizes.K + k] * B[k * sizes.N + n]; }
  C[m * sizes.N + n] = sum;
}
