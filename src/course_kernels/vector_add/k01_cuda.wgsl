// Vector add, kernel 1, in WGSL: one thread adds one pair.
//
// Contract  problem.py      Sister  k01_cuda.cu
// Idea      the loop is gone: every thread asks which pair is its own
// Cost      two reads, one addition, one write for every element
// Source    W3C, WebGPU Shading Language, section on built-in values; the idea is the sister's

const THREADS: u32 = 256;

struct Sizes { N: u32 }

@group(0) @binding(0) var<storage, read> x: array<f32>;        // [N]
@group(0) @binding(1) var<storage, read> y: array<f32>;        // [N]
@group(0) @binding(2) var<storage, read_write> z: array<f32>;  // [N]
@group(0) @binding(3) var<uniform> sizes: Sizes;

// grid: ceil(N / THREADS), folded into x and y
@compute @workgroup_size(THREADS)
fn vector_add(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
              @builtin(local_invocation_id) thread: vec3<u32>) {
  let i = (group.y * groups.x + group.x) * THREADS + thread.x;
  if (i >= sizes.N) { return; }  // the last workgroup reaches past the end
  z[i] = x[i] + y[i];
}
