/* Your own GPU, the arithmetic: numbers drawn, answers compared, times refused or believed, sizes that grow. All of it is
   pure; a test holds it against Python over random samples. Times are microseconds, sizes bytes, GB = 1e9. */
var PercentOfPeak = window.PercentOfPeak || {};
PercentOfPeak.yourGpu = {};

(function () {
  "use strict";
  var STEPS = 1000;       /* of a clock, in what one batch takes: so the clock itself adds a thousandth */
  var ENOUGH_MS = 50;     /* a dispatch that takes as long is large enough */
  var LONGEST_MS = 200;   /* none may take longer: the machine would stand still for its reader */
  var AGREE = 20;         /* how far the stamps of a GPU and the clock of the page may be apart, as a ratio */

  /* A number that no clock can have shown. */
  function Refused(message) {
    this.name = "Refused";
    this.message = message;
  }
  Refused.prototype = Object.create(Error.prototype);

  /* ---- numbers drawn ---- */

  /* Whole numbers below 2 ** 32, the same in every browser: mulberry32. */
  function draws(seed) {
    var state = seed >>> 0;
    return function () {
      state = (state + 0x6D2B79F5) >>> 0;
      var t = Math.imul(state ^ (state >>> 15), state | 1);
      t = (t + Math.imul(t ^ (t >>> 7), t | 61)) ^ t;
      return (t ^ (t >>> 14)) >>> 0;
    };
  }
  /* Between 0 and 1, in steps of 2 ** -24: each is a float32. */
  function uniform(draw) { return (draw() >>> 8) / 16777216; }
  /* Mean 0, variance 1, nearly normal: three fields of ten bits, added up. */
  function nearlyNormal(draw) {
    var bits = draw();
    return ((bits & 1023) + (bits >>> 10 & 1023) + (bits >>> 20 & 1023) - 1534.5) / 512;
  }
  /* The numbers 0 to n - 1 in an order drawn anew. */
  function shuffled(n, draw) {
    var list = [], i, j, kept;
    for (i = 0; i < n; i++) list.push(i);
    for (i = n - 1; i > 0; i--) {
      j = draw() % (i + 1);
      kept = list[i];
      list[i] = list[j];
      list[j] = kept;
    }
    return list;
  }

  /* ---- samples ---- */

  /* The value below which a share of the samples lies, between neighbours on a straight line. */
  function quantile(samples, share) {
    var sorted = samples.slice().sort(function (a, b) { return a - b; });
    var at = share * (sorted.length - 1), low = Math.floor(at), high = Math.min(low + 1, sorted.length - 1);
    return sorted[low] + (at - low) * (sorted[high] - sorted[low]);
  }
  /* Median, quartiles and count; the spread is the distance of the quartiles, or a step of the clock if that is more. */
  function summary(samples, step) {
    var low = quantile(samples, 0.25), high = quantile(samples, 0.75);
    return { n: samples.length, median: quantile(samples, 0.5), low: low, high: high, spread: Math.max(high - low, step || 0) };
  }

  /* ---- times ---- */

  /* The step of a clock: what all its stamps, in whole nanoseconds, are multiples of; in microseconds. */
  function stepOf(stamps) {
    function divisor(a, b) { return b ? divisor(b, a % b) : a; }
    return Number(stamps.reduce(divisor, 0n)) / 1e3;
  }
  /* How many dispatches one batch has: until it takes a thousand steps of the clock, and never above the longest time. */
  function batchOf(one_us, step_us) {
    var wanted = Math.ceil(STEPS * step_us / one_us), most = Math.floor(1e3 * LONGEST_MS / one_us);
    return Math.max(1, Math.min(wanted, most));
  }
  /* Microseconds between two stamps of the GPU, in nanoseconds, while the page's clock saw so many go by. */
  function duration(begin, end, wall_us, step_us) {
    if (!(begin > 0n) || !(end > 0n)) throw new Refused("a time stamp says nothing: it is zero");
    if (end < begin) throw new Refused("the GPU's clock ran backwards");
    return believed(Number(end - begin) / 1e3, wall_us, step_us);
  }
  /* The same of a time that somebody says it took. */
  function believed(us, wall_us, step_us) {
    if (!Number.isFinite(us) || !Number.isFinite(wall_us)) throw new Refused("a time is no number");
    if (wall_us <= 0) throw new Refused("the page's clock ran backwards, or stood still");
    if (us <= 0) throw new Refused("no time went by");
    if (us > wall_us + 2 * step_us) throw new Refused("the GPU says that it took longer than the whole wait for it");
    if (us * AGREE + 2 * step_us < wall_us && wall_us > 2e4) throw new Refused("the GPU's stamps and the page's clock do not agree");
    return us;
  }
  /* Whether a larger size is tried after one that took so long: the next one does so many times the work. */
  function grows(ms, factor) { return ms < ENOUGH_MS && ms * factor <= LONGEST_MS; }

  function gbPerS(bytes, us) { return bytes / us / 1e3; }
  function gflopPerS(flops, us) { return flops / us / 1e3; }

  /* ---- a roofline ---- */

  /* What is allowed at so many operations for each byte, in GFLOP/s. */
  function allowed(intensity, roofs) { return Math.min(roofs.gflop_per_s, intensity * roofs.gb_per_s); }
  /* The share of its roof: bytes a second where nothing is multiplied. */
  function share(one, roofs) {
    if (!one.flops) return gbPerS(one.bytes, one.us) / roofs.gb_per_s;
    return gflopPerS(one.flops, one.us) / allowed(one.flops / one.bytes, roofs);
  }
  /* Which answer of a prediction has come true: bounds go up, and an answer begins at its lower bound. */
  function answer(value, bounds) {
    return bounds.filter(function (bound) { return value >= bound; }).length;
  }

  /* ---- answers ---- */

  /* The error of the worst element: |out - truth| / (|truth| + rms(truth)), the root mean square over `width` neighbours, or
     over all of them where that is 0. NaN anywhere gives NaN. */
  function worstError(out, truth, width) {
    var worst = 0, start = 0, n = truth.length, size = width || n, i, end, squares, rms, error;
    for (; start < n; start += size) {
      end = Math.min(start + size, n);
      squares = 0;
      for (i = start; i < end; i++) squares += truth[i] * truth[i];
      rms = Math.sqrt(squares / (end - start));
      for (i = start; i < end; i++) {
        error = rms === 0 && out[i] === truth[i] ? 0 : Math.abs(out[i] - truth[i]) / (Math.abs(truth[i]) + rms);
        if (error !== error) return NaN;
        if (error > worst) worst = error;
      }
    }
    return worst;
  }

  PercentOfPeak.yourGpu.arithmetic = {
    STEPS: STEPS, ENOUGH_MS: ENOUGH_MS, LONGEST_MS: LONGEST_MS, Refused: Refused,
    draws: draws, uniform: uniform, nearlyNormal: nearlyNormal, shuffled: shuffled, quantile: quantile, summary: summary,
    stepOf: stepOf, batchOf: batchOf, duration: duration, believed: believed, grows: grows, gbPerS: gbPerS,
    gflopPerS: gflopPerS, allowed: allowed, share: share, answer: answer, worstError: worstError
  };
})();
