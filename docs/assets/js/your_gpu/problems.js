/* Your own GPU, the contracts: what each problem is given, what is right, what it costs at least, and how its kernels are
   started. The truth is computed here, in float64, by the formula and apart from every kernel. A test holds tolerances,
   bytes and operations against the problems of the library.

   A problem: `given(dims)` words of each input, `inputs(dims, draw)` Float32Arrays · `out(dims)` {count, width}: elements of the answer, in chunks ·
   `truth(inputs, dims, chunk)` one chunk of it · `apart` whether an error is held against its own chunk · `tolerance`,
   `bytes`, `flops` by dims · `check` sizes, ragged ones among them · `first` the size that is tried first, `larger(dims)`
   the next one, of `factor` times the work · `sizes` dims in the order of the kernels' struct · `zero` whether the answer
   begins at zero.
   A kernel: `entries` functions and grids in the order they run · `needs` a feature of the device · `scratch(dims)` words of
   a further buffer · `fits(dims)`. */
(function () {
  "use strict";
  var kit = PercentOfPeak.yourGpu, arithmetic = kit.arithmetic;
  var SIDE = 65535;  /* workgroups that may lie along one side of a grid */
  var RUN = 256;     /* neighbours that make a chunk of a vector */

  function up(a, b) { return Math.ceil(a / b); }
  /* So many workgroups in a row, folded where they are more than one side may have. */
  function folded(blocks, deep) {
    var rows = Math.max(1, up(blocks, SIDE)), wide = Math.max(1, up(blocks, rows));
    return deep ? [wide, deep, rows] : [wide, rows, 1];
  }
  function array(n, one) {
    var made = new Float32Array(n), i;
    for (i = 0; i < n; i++) made[i] = one();
    return made;
  }
  function between(draw) { return function () { return 2 * arithmetic.uniform(draw) - 1; }; }
  function zeroToOne(draw) { return function () { return arithmetic.uniform(draw); }; }
  function normal(draw, times) { return function () { return times * arithmetic.nearlyNormal(draw); }; }
  /* A chunk of a vector whose element n the formula gives. */
  function chunkOf(count, chunk, formula) {
    var start = chunk * RUN, made = new Float64Array(Math.min(RUN, count - start)), i;
    for (i = 0; i < made.length; i++) made[i] = formula(start + i);
    return made;
  }
  function vector(dims) { return { count: dims.N, width: RUN }; }
  function twice(dims) { return { N: 2 * dims.N }; }
  function ulp(times) { return times / 16777216; }

  /* ---- problems ---- */

  var problems = {
    copy: {
      sizes: ["N"], first: { N: 1 << 16 }, larger: twice, factor: 2, out: vector,
      check: [{ N: 1 }, { N: 7 }, { N: 4099 }, { N: 16384 }],
      given: function (d) { return [d.N]; },
      inputs: function (d, draw) { return [array(d.N, between(draw))]; },
      truth: function (inputs, d, chunk) { return chunkOf(d.N, chunk, function (n) { return inputs[0][n]; }); },
      tolerance: function () { return 0; },
      bytes: function (d) { return 8 * d.N; }, flops: function () { return 0; }
    },
    vector_add: {
      sizes: ["N"], first: { N: 1 << 16 }, larger: twice, factor: 2, out: vector,
      check: [{ N: 1 }, { N: 1000 }, { N: 1027 }],
      given: function (d) { return [d.N, d.N]; },
      inputs: function (d, draw) { return [array(d.N, normal(draw, 1)), array(d.N, normal(draw, 1))]; },
      truth: function (inputs, d, chunk) { return chunkOf(d.N, chunk, function (n) { return inputs[0][n] + inputs[1][n]; }); },
      tolerance: function () { return ulp(1); },
      bytes: function (d) { return 12 * d.N; }, flops: function (d) { return d.N; }
    },
    strided_read: {
      sizes: ["N", "S"], first: { N: 1 << 16, S: 1 }, factor: 2, out: vector,
      larger: function (d) { return { N: 2 * d.N, S: d.S }; },
      check: [{ N: 1, S: 1 }, { N: 1000, S: 8 }, { N: 3003, S: 3 }, { N: 4096, S: 32 }],
      given: function (d) { return [d.N]; },
      inputs: function (d, draw) { return [array(d.N, between(draw))]; },
      truth: function (inputs, d, chunk) {
        var lap = d.N / d.S;
        return chunkOf(d.N, chunk, function (n) { return inputs[0][n % lap * d.S + Math.floor(n / lap)]; });
      },
      tolerance: function () { return 0; },
      bytes: function (d) { return 8 * d.N; }, flops: function () { return 0; }
    },
    fused_multiply_add: {
      sizes: ["N", "K"], first: { N: 1 << 12, K: 1024 }, factor: 2,
      larger: function (d) { return { N: 2 * d.N, K: d.K }; },
      check: [{ N: 1, K: 1 }, { N: 300, K: 37 }, { N: 129, K: 1024 }],
      given: function (d) { return [8 * d.N, d.N]; },
      inputs: function (d, draw) {
        return [array(8 * d.N, function () { return 1.5 + 0.5 * arithmetic.uniform(draw); }),
          array(d.N, function () { return (1 + 0.5 * arithmetic.uniform(draw)) / d.K - 1; })];
      },
      out: function (d) { return { count: 8 * d.N, width: RUN }; },
      truth: function (inputs, d, chunk) {
        return chunkOf(8 * d.N, chunk, function (i) {
          var a = inputs[1][i % d.N], goal = 1 / (1 - a);
          return goal + Math.pow(a, d.K) * (inputs[0][i] - goal);
        });
      },
      /* Twice the library's: a device may round twice in each step, after the product and after the sum. */
      tolerance: function (d) { return 2 * ulp(d.K % 2 ? 60 : 6) * Math.sqrt(d.K); },
      bytes: function (d) { return 4 * 17 * d.N; }, flops: function (d) { return 16 * d.N * d.K; }
    },
    transpose: {
      sizes: ["M", "N"], first: { M: 64, N: 64 }, factor: 4,
      larger: function (d) { return { M: 2 * d.M, N: 2 * d.N }; },
      check: [{ M: 1, N: 1 }, { M: 31, N: 33 }, { M: 1, N: 130 }, { M: 130, N: 1 }, { M: 64, N: 96 }],
      given: function (d) { return [d.M * d.N]; },
      inputs: function (d, draw) { return [array(d.M * d.N, between(draw))]; },
      out: function (d) { return { count: d.M * d.N, width: d.M }; },
      truth: function (inputs, d, n) {
        var made = new Float64Array(d.M), m;
        for (m = 0; m < d.M; m++) made[m] = inputs[0][m * d.N + n];
        return made;
      },
      tolerance: function () { return 0; },
      bytes: function (d) { return 8 * d.M * d.N; }, flops: function () { return 0; }
    },
    reduction: {
      sizes: ["N"], first: { N: 1 << 10 }, larger: twice, factor: 2, zero: true,
      check: [{ N: 1 }, { N: 31 }, { N: 1025 }, { N: 20011 }],
      given: function (d) { return [d.N]; },
      inputs: function (d, draw) { return [array(d.N, zeroToOne(draw))]; },
      out: function () { return { count: 1, width: 1 }; },
      truth: function (inputs) {
        var sum = 0, i;
        for (i = 0; i < inputs[0].length; i++) sum += inputs[0][i];
        return Float64Array.of(sum);
      },
      tolerance: function (d) { return ulp(1) * Math.sqrt(d.N); },
      bytes: function (d) { return 4 * d.N + 4; }, flops: function (d) { return d.N - 1; }
    },
    sgemm: {
      sizes: ["M", "N", "K"], first: { M: 64, N: 64, K: 64 }, factor: 8,
      larger: function (d) { return { M: 2 * d.M, N: 2 * d.N, K: 2 * d.K }; },
      check: [{ M: 1, N: 1, K: 1 }, { M: 33, N: 65, K: 17 }, { M: 130, N: 72, K: 36 }],
      given: function (d) { return [d.M * d.K, d.K * d.N]; },
      inputs: function (d, draw) { return [array(d.M * d.K, normal(draw, 1)), array(d.K * d.N, normal(draw, 1))]; },
      out: function (d) { return { count: d.M * d.N, width: d.N }; },
      truth: function (inputs, d, m) {
        var made = new Float64Array(d.N), a, k, n;
        for (k = 0; k < d.K; k++) {
          a = inputs[0][m * d.K + k];
          for (n = 0; n < d.N; n++) made[n] += a * inputs[1][k * d.N + n];
        }
        return made;
      },
      tolerance: function (d) { return 8 * ulp(1) * Math.sqrt(d.K); },
      bytes: function (d) { return 4 * (d.M * d.K + d.K * d.N + d.M * d.N); }, flops: function (d) { return 2 * d.M * d.N * d.K; }
    },
    softmax: {
      sizes: ["M", "N"], first: { M: 16, N: 1024 }, factor: 2,
      larger: function (d) { return { M: 2 * d.M, N: d.N }; },
      check: [{ M: 1, N: 1 }, { M: 3, N: 31 }, { M: 5, N: 781 }],
      given: function (d) { return [d.M * d.N]; },
      inputs: function (d, draw) { return [array(d.M * d.N, normal(draw, 3))]; },
      out: function (d) { return { count: d.M * d.N, width: d.N }; },
      truth: function (inputs, d, m) {
        var row = inputs[0].subarray(m * d.N, (m + 1) * d.N), most = row.reduce(function (a, b) { return Math.max(a, b); });
        var made = Float64Array.from(row, function (x) { return Math.exp(x - most); });
        var sum = made.reduce(function (a, b) { return a + b; });
        return made.map(function (x) { return x / sum; });
      },
      tolerance: function () { return ulp(128); },
      bytes: function (d) { return 8 * d.M * d.N; }, flops: function (d) { return 4 * d.M * d.N; }
    },
    attention: {
      sizes: ["N", "causal"], first: { N: 32, H: 4, D: 64, causal: 0 }, factor: 4, apart: true,
      larger: function (d) { return { N: 2 * d.N, H: d.H, D: 64, causal: d.causal }; },
      check: [{ N: 1, H: 1, D: 64, causal: 0 }, { N: 17, H: 2, D: 64, causal: 1 }, { N: 129, H: 1, D: 64, causal: 0 }],
      given: function (d) { return [0, 1, 2].map(function () { return d.H * d.N * d.D; }); },
      inputs: function (d, draw) { return [0, 1, 2].map(function () { return array(d.H * d.N * d.D, normal(draw, 1)); }); },
      out: function (d) { return { count: d.H * d.N * d.D, width: d.D }; },
      truth: function (inputs, d, chunk) {
        var head = Math.floor(chunk / d.N) * d.N, seen = d.causal ? chunk - head + 1 : d.N, made = new Float64Array(d.D);
        var scores = new Float64Array(seen), most = -Infinity, sum = 0, n, i;
        for (n = 0; n < seen; n++) {
          for (i = 0; i < d.D; i++) scores[n] += inputs[0][chunk * d.D + i] * inputs[1][(head + n) * d.D + i];
          scores[n] /= Math.sqrt(d.D);
          most = Math.max(most, scores[n]);
        }
        for (n = 0; n < seen; n++) {
          scores[n] = Math.exp(scores[n] - most);
          sum += scores[n];
          for (i = 0; i < d.D; i++) made[i] += scores[n] * inputs[2][(head + n) * d.D + i];
        }
        return made.map(function (x) { return x / sum; });
      },
      tolerance: function () { return Math.pow(2, -15); },
      bytes: function (d) { return 16 * d.H * d.N * d.D; },
      flops: function (d) { return 4 * d.H * d.N * d.N * d.D / (d.causal ? 2 : 1); }
    }
  };

  /* ---- kernels ---- */

  function one(entry, grid) { return [{ entry: entry, grid: grid }]; }
  function tiles(d) { return [up(d.M, 32) * up(d.N, 32), 1, 1]; }
  function blocks(d) { return folded(up(d.N, 256)); }
  function wide(d) { return [up(d.N, 128), up(d.M, 128), 1]; }
  function fours(d) { return d.N % 4 === 0 && d.K % 4 === 0; }

  var kernels = {
    "copy/k01_vectorised": { entries: one("copy_vectorised", function (d) { return folded(up(Math.floor(d.N / 4), 1024)); }) },
    "fused_multiply_add/k01_chains": { entries: one("chains_8", function (d) { return [up(d.N, 256), 1, 1]; }) },
    "vector_add/k01_cuda": { entries: one("vector_add", blocks) },
    "strided_read/k01_strided": { entries: one("read_strided", function (d) { return folded(up(d.N / d.S, 256), d.S); }) },
    "transpose/k01_naive": { entries: one("transpose_naive", tiles) },
    "transpose/k02_tiled": { entries: one("transpose_tiled", tiles) },
    "transpose/k03_padded": { entries: one("transpose_padded", tiles) },
    "reduction/k01_atomics": { entries: one("reduction_atomics", blocks) },
    "reduction/k02_tree": { entries: one("reduction_tree", blocks) },
    "reduction/k03_shuffle": { entries: one("reduction_shuffle", blocks), needs: "subgroups" },
    "sgemm/k01_naive": { entries: one("sgemm_naive", function (d) { return [up(d.M, 32), up(d.N, 8), 1]; }) },
    "sgemm/k02_coalesced": { entries: one("sgemm_coalesced", function (d) { return [up(d.N, 32), up(d.M, 8), 1]; }) },
    "sgemm/k03_shared_tiles": { entries: one("sgemm_shared_tiles", function (d) { return [up(d.N, 16), up(d.M, 16), 1]; }) },
    "sgemm/k05_register_tile": { entries: one("sgemm_register_tile", wide) },
    "sgemm/k06_vectorised": { entries: one("sgemm_vectorised", wide), fits: fours },
    "softmax/k01_online": { entries: one("softmax_online", function (d) { return folded(d.M); }) },
    "attention/k01_materialised": {
      entries: [
        { entry: "attention_scores", grid: function (d) { return [up(d.N, 32), up(d.N, 8), d.H]; } },
        { entry: "attention_weights", grid: function (d) { return [d.N, 1, d.H]; } },
        { entry: "attention_answer", grid: function (d) { return [up(d.D, 32), up(d.N, 8), d.H]; } }
      ],
      scratch: function (d) { return d.H * d.N * d.N; }
    },
    "attention/k02_teaching": { entries: one("attention_teaching", function (d) { return [up(d.N, 64), d.H, 1]; }) }
  };

  kit.problems = problems;
  kit.kernels = kernels;
  kit.problemOf = function (kernel) { return problems[kernel.split("/")[0]]; };
})();
