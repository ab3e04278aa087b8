// Softmax, kernel 1, in WGSL: one workgroup owns one row of any length.
//
// Contract  problem.py      Sister  k01_online.cu, merge.cuh
// Idea      maximum and sum are found in one pass: when the maximum grows, the sum so far is rescaled
// Against   three passes, for the maximum, for the sum, for the answer
// Cost      x is read twice (once for m and l, once for y), y is written once; six barriers, where the sister shuffles
// Limits    WGSL lets a compiler assume that no infinity and no NaN comes up: rows that hold one are not promised
// Source    Milakov & Gimelshein 2018, arXiv:1805.02867, algorithm 3

const THREADS: u32 = 64;  // of one workgroup; a power of two
const LOWEST: f32 = -3.402823466e38;  // what an empty part has for a maximum; finite, so that LOWEST - LOWEST is 0

struct Sizes { M: u32, N: u32 }

@group(0) @binding(0) var<storage, read> x: array<f32>;        // [M, N]
@group(0) @binding(1) var<storage, read_write> y: array<f32>;  // [M, N]
@group(0) @binding(2) var<uniform> sizes: Sizes;

var<workgroup> parts: array<vec2<f32>, THREADS>;  // m and l of every thread

// Two parts of a row become one: the sum that was taken against the smaller maximum is repaired, then they are added.
fn merge(one: vec2<f32>, other: vec2<f32>) -> vec2<f32> {
  let m = max(one.x, other.x);
  return vec2<f32>(m, one.y * exp(one.x - m) + other.y * exp(other.x - m));
}

// grid: M, folded into x and y
@compute @workgroup_size(THREADS)
fn softmax_online(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
                  @builtin(local_invocation_id) thread: vec3<u32>) {
  let t = thread.x;
  let N = sizes.N;
  let row = group.y * groups.x + group.x;
  if (row >= sizes.M) { return; }  // the whole workgroup leaves together
  let start = row * N;

  // Each thread sums up its own part of the row. Neighbouring threads read neighbouring columns.
  var part = vec2<f32>(LOWEST, 0.0);
  for (var n = t; n < N; n += THREADS) { part = merge(part, vec2<f32>(x[start + n], 1.0)); }
  parts[t] = part;

  // 64 parts, then 32, 16, 8, 4, 2, 1.
  for (var half = THREADS / 2; half > 0; half /= 2) {
    workgroupBarrier();
    if (t < half) { parts[t] = merge(parts[t], parts[t + half]); }
  }
  workgroupBarrier();  // the row's own m and l are there, for all

  let whole = parts[0];
  for (var n = t; n < N; n += THREADS) { y[start + n] = exp(x[start + n] - whole.x) / whole.y; }
}
