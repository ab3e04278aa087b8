// Reduction, kernel 1, in WGSL: everyone adds to one number.
//
// Contract  problem.py      Sister  k01_atomics.cu
// Idea      a thread adds its element to the total in memory, and tries again whenever somebody came between
// Cost      reads every element once; N additions to one address, which stand in line, and each may take several tries
// Limits    right up to N = 2**24 or so: one float32 total then no longer grows by less than a whole unit
// Next      k02_tree.wgsl, where a workgroup adds up first
// Source    W3C, WebGPU Shading Language, section on atomic functions

const THREADS: u32 = 256;

struct Sizes { N: u32 }

@group(0) @binding(0) var<storage, read> x: array<f32>;                // [N]
@group(0) @binding(1) var<storage, read_write> y: array<atomic<u32>>;  // [1], zero before the first workgroup
@group(0) @binding(2) var<uniform> sizes: Sizes;

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
fn reduction_atomics(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
                     @builtin(local_invocation_id) thread: vec3<u32>) {
  let i = (group.y * groups.x + group.x) * THREADS + thread.x;
  if (i < sizes.N) { add(x[i]); }
}
