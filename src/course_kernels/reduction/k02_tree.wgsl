// Reduction, kernel 2, in WGSL: a workgroup adds up in its own memory, and sends one number.
//
// Contract  problem.py      Sister  k02_tree.cu
// Idea      256 numbers become 128 sums of two, then 64, 32 ... 1: eight steps, and the additions of a step all at
//           once
// Against   k01_atomics, where every element goes to the total by itself
// Cost      reads every element once; one addition to the total for THREADS elements; nine barriers in a workgroup
// Next      k03_shuffle.wgsl, where most steps need neither workgroup memory nor a barrier
// Source    Harris, Optimizing Parallel Reduction in CUDA, NVIDIA 2007, reduction 3

const THREADS: u32 = 256;  // of one workgroup; a power of two

struct Sizes { N: u32 }

@group(0) @binding(0) var<storage, read> x: array<f32>;                // [N]
@group(0) @binding(1) var<storage, read_write> y: array<atomic<u32>>;  // [1], zero before the first workgroup
@group(0) @binding(2) var<uniform> sizes: Sizes;

var<workgroup> part: array<f32, THREADS>;

// WGSL adds whole numbers in one step, but no floats: the bits are exchanged, if nobody has come between.
fn add(value: f32) {
  var old = atomicLoad(&y[0]);
  loop {
    let tried = atomicCompareExchangeWeak(&y[0], old, bitcast<u32>(bitcast<f32>(old) + value));
    if (tried.exchanged) { break; }
    old = tried.old_value;
  }
}

// grid: ceil(N / THREADS), folded into x and y
@compute @workgroup_size(THREADS)
fn reduction_tree(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
                  @builtin(local_invocation_id) thread: vec3<u32>) {
  let t = thread.x;
  let i = (group.y * groups.x + group.x) * THREADS + t;
  var mine = 0.0;
  if (i < sizes.N) { mine = x[i]; }
  part[t] = mine;

  // The first half takes the second half in. Neighbouring threads touch neighbouring words.
  for (var half = THREADS / 2; half > 0; half /= 2) {
    workgroupBarrier();  // the numbers of the step before are complete
    if (t < half) { part[t] += part[t + half]; }
  }

  if (t == 0) { add(part[0]); }
}
