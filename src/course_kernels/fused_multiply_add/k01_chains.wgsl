// Fused multiply-add, kernel 1, in WGSL: eight chains in every thread.
//
// Contract  problem.py, C = 8      Sister  k01_chains.cu
// Idea      a step of a chain must wait for the step before it, but not for its neighbours: with eight chains a thread
//           always has eight instructions that could go next. Two vectors of four hold them
// Cost      one multiply-add for every step of every chain, and a loop around eight steps
// Limits    WGSL lets fma round twice: what is counted as one operation pair may be two instructions on some GPU
// Source    Volkov 2010, "Better performance at lower occupancy", GPU Technology Conference

const THREADS: u32 = 256;
const UNROLLED: u32 = 8;  // steps in one turn of the loop: counting and jumping back are little beside them

struct Sizes { N: u32, K: u32 }

@group(0) @binding(0) var<storage, read> x: array<f32>;        // [8, N]
@group(0) @binding(1) var<storage, read> a: array<f32>;        // [N]
@group(0) @binding(2) var<storage, read_write> y: array<f32>;  // [8, N]
@group(0) @binding(3) var<uniform> sizes: Sizes;

fn step(held: vec4<f32>, a_n: f32) -> vec4<f32> { return fma(held, vec4<f32>(a_n), vec4<f32>(1.0)); }

// grid: ceil(N / THREADS)
@compute @workgroup_size(THREADS)
fn chains_8(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_id) thread: vec3<u32>) {
  let N = sizes.N;
  let n = group.x * THREADS + thread.x;
  if (n >= N) { return; }
  let a_n = a[n];
  var low = vec4<f32>(x[n], x[N + n], x[2 * N + n], x[3 * N + n]);
  var high = vec4<f32>(x[4 * N + n], x[5 * N + n], x[6 * N + n], x[7 * N + n]);

  var k = 0u;
  for (; k + UNROLLED <= sizes.K; k += UNROLLED) {
    low = step(low, a_n); high = step(high, a_n);
    low = step(low, a_n); high = step(high, a_n);
    low = step(low, a_n); high = step(high, a_n);
    low = step(low, a_n); high = step(high, a_n);
    low = step(low, a_n); high = step(high, a_n);
    low = step(low, a_n); high = step(high, a_n);
    low = step(low, a_n); high = step(high, a_n);
    low = step(low, a_n); high = step(high, a_n);
  }
  for (; k < sizes.K; k++) { low = step(low, a_n); high = step(high, a_n); }

  for (var c = 0u; c < 4; c++) {
    y[c * N + n] = low[c];
    y[(c + 4) * N + n] = high[c];
  }
}
