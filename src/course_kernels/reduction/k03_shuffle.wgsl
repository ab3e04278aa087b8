// Reduction, kernel 3, in WGSL: lanes of a subgroup hand their registers to each other.
//
// Contract  problem.py      Sister  k03_shuffle.cu
// Idea      a shuffle reads a register of another lane; a subgroup adds up its numbers in a few of them and sends one
//           value through workgroup memory, behind one barrier
// Against   k02_tree, where every step goes through workgroup memory and waits for the whole workgroup
// Cost      reads every element once; one addition to the total for THREADS elements; one barrier in a workgroup
// Limits    needs the optional feature `subgroups`. A subgroup has 4 to 128 lanes, and which threads they are is not
//           promised: each first lane takes a number for its place
// Source    Luitjens, Faster Parallel Reductions on Kepler, NVIDIA Technical Blog 2014

enable subgroups;

const THREADS: u32 = 256;  // of one workgroup
const MOST: u32 = 64;      // subgroups of a workgroup, where a subgroup has 4 lanes

struct Sizes { N: u32 }

@group(0) @binding(0) var<storage, read> x: array<f32>;                // [N]
@group(0) @binding(1) var<storage, read_write> y: array<atomic<u32>>;  // [1], zero before the first workgroup
@group(0) @binding(2) var<uniform> sizes: Sizes;

var<workgroup> part: array<f32, MOST>;
var<workgroup> taken: atomic<u32>;  // places in part; WGSL sets it to zero

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
fn reduction_shuffle(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
                     @builtin(local_invocation_id) thread: vec3<u32>,
                     @builtin(subgroup_invocation_id) lane: u32, @builtin(subgroup_size) lanes: u32) {
  let i = (group.y * groups.x + group.x) * THREADS + thread.x;
  var sum = 0.0;
  if (i < sizes.N) { sum = x[i]; }

  // Partners are half the lanes apart, then a quarter ... 1: in the end every lane has the sum.
  for (var step = lanes / 2; step > 0; step /= 2) { sum += subgroupShuffleXor(sum, step); }
  if (lane == 0) {
    let place = atomicAdd(&taken, 1u);
    part[place] = sum;
  }
  workgroupBarrier();  // one value of every subgroup is there

  if (thread.x == 0) {
    var total = 0.0;
    for (var i = 0u; i < atomicLoad(&taken); i++) { total += part[i]; }
    add(total);
  }
}
