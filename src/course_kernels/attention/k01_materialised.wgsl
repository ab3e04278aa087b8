// Attention, kernel 1, in WGSL: the formula as it stands, with the whole N x N matrix of scores in memory.
//
// Contract  problem.py, fp32, D = 64      Sister  k01_materialised.py, which calls a library three times
// Idea      two matrix multiplies, and a softmax between them: three entry points, run one after the other
// Cost      the N x N matrix crosses memory five times: scores written, read for the maximum and the sum, read and
//           written as weights, read for the answer
// Limits    the multiplies are the plain ones of sgemm's second kernel
// Next      k02_teaching.wgsl never writes a score to memory
// Source    Vaswani et al. 2017, arXiv:1706.03762, equation 1

const D: u32 = 64;
const WIDE: u32 = 32;
const HIGH: u32 = 8;
const THREADS: u32 = 256;
const NEVER: f32 = -1e30;  // our minus infinity: finite, since WGSL promises no infinities

struct Sizes { N: u32, causal: u32 }

@group(0) @binding(0) var<storage, read> Q: array<f32>;             // [heads, N, D]
@group(0) @binding(1) var<storage, read> K: array<f32>;             // [heads, N, D]
@group(0) @binding(2) var<storage, read> V: array<f32>;             // [heads, N, D]
@group(0) @binding(3) var<storage, read_write> O: array<f32>;       // [heads, N, D]
@group(0) @binding(4) var<storage, read_write> scores: array<f32>;  // [heads, N, N]
@group(0) @binding(5) var<uniform> sizes: Sizes;

var<workgroup> part: array<f32, THREADS>;

// grid: (ceil(N / WIDE), ceil(N / HIGH), heads)
@compute @workgroup_size(WIDE, HIGH)
fn attention_scores(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_id) thread: vec3<u32>) {
  let N = sizes.N;
  let m = group.y * HIGH + thread.y;
  let n = group.x * WIDE + thread.x;
  if (m >= N || n >= N) { return; }
  var dot = 0.0;
  for (var d = 0u; d < D; d++) { dot += Q[(group.z * N + m) * D + d] * K[(group.z * N + n) * D + d]; }
  scores[(group.z * N + m) * N + n] = select(dot * inverseSqrt(f32(D)), NEVER, sizes.causal != 0 && n > m);
}

// grid: (N, 1, heads)
@compute @workgroup_size(THREADS)
fn attention_weights(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_id) thread: vec3<u32>) {
  let N = sizes.N;
  let t = thread.x;
  let start = (group.z * N + group.x) * N;

  var m = NEVER;
  for (var n = t; n < N; n += THREADS) { m = max(m, scores[start + n]); }
  part[t] = m;
  for (var half = THREADS / 2; half > 0; half /= 2) {
    workgroupBarrier();
    if (t < half) { part[t] = max(part[t], part[t + half]); }
  }
  workgroupBarrier();
  m = part[0];
  workgroupBarrier();  // all have the maximum: its place may be filled again

  var l = 0.0;
  for (var n = t; n < N; n += THREADS) { l += exp(scores[start + n] - m); }
  part[t] = l;
  for (var half = THREADS / 2; half > 0; half /= 2) {
    workgroupBarrier();
    if (t < half) { part[t] += part[t + half]; }
  }
  workgroupBarrier();
  l = part[0];
  for (var n = t; n < N; n += THREADS) { scores[start + n] = exp(scores[start + n] - m) / l; }
}

// grid: (ceil(D / WIDE), ceil(N / HIGH), heads)
@compute @workgroup_size(WIDE, HIGH)
fn attention_answer(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_id) thread: vec3<u32>) {
  let N = sizes.N;
  let m = group.y * HIGH + thread.y;
  let d = group.x * WIDE + thread.x;
  if (m >= N || d >= D) { return; }
  var sum = 0.0;
  for (var n = 0u; n < N; n++) { sum += scores[(group.z * N + m) * N + n] * V[(group.z * N + n) * D + d]; }
  O[(group.z * N + m) * D + d] = sum;
}
