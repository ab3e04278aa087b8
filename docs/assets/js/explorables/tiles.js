/* Tiles: what the tiles of a matrix multiply ask of an SM and of the card. Twin of charts/explorables/tiles.py. */
PercentOfPeak.explorables.tiles = {
  TILE: ["BM", "BN", "BK", "TM", "TN", "stages", "pad"],

  work: function (state, data) {
    "use strict";
    var digits = PercentOfPeak.digits, at = PercentOfPeak.at, LEFT = 32, TOP = 58, SCALE = 0.46, X = 170, WIDE = 175, ROWS = 4;
    var BM = state.BM, BN = state.BN, sums = state.TM * state.TN, size = state.bytes;
    function up(a, b) { return Math.ceil(a / b); }
    function room(name) { return data[name].value; }
    var threads = Math.floor(BM * BN / sums), warps = up(threads, 32);
    var shared = state.stages * state.BK * (BM + BN + state.pad) * size + 1024;
    var found = this.measured(state, data), counted = found.find(function (one) { return one.name in data.counted; });
    var least = sums + state.TM + state.TN, registers = counted ? data.counted[counted.name].value : least;
    var loads = up(state.TM * size, 16) + up(state.TN * size, 16), share = sums / (sums + loads);
    /* A warp's registers come in pieces of 256, out of its quarter of the SM. */
    var fit = {
      shared: Math.floor(room("shared") * 1024 / shared),
      registers: Math.floor(4 * Math.floor(room("registers") / 4 / (up(registers, 8) * 256)) / warps),
      threads: Math.floor(room("threads") / (32 * warps)),
      blocks: 32
    };
    var blocks = Math.min(fit.shared, fit.registers, fit.threads, fit.blocks);
    var tiles = up(state.M, BM) * up(state.N, BN), places = blocks * room("sms"), rounds = places ? up(tiles, places) : 0;
    var last = tiles - (rounds - 1) * places;
    var wrong = threads > 1024 ? "too_many" : least > 255 ? "spills" : !fit.shared ? "too_much" : !fit.registers ? "too_wide" : "";
    var says = [wrong];
    if (!wrong) {
      says = ["fits"];
      Object.keys(fit).forEach(function (what) { if (fit[what] === blocks) says.push("by_" + what); });
      says.push(counted ? "counted" : "least", "carries", "waves", ["none", "measured", "two"][found.length]);
    }
    var texts = {
      threads: digits(threads), warps: digits(warps), sums: digits(sums), least: digits(least),
      registers: counted ? ["counted", counted.name] : digits(registers), asked: digits(threads * least), shared: digits(shared / 1024, 2),
      l2: digits(size * (1 / BM + 1 / BN), 4), intensity: digits(2 * BM * BN / ((BM + BN) * size), 1),
      near: digits(size * (state.TM + state.TN) / sums, 2), load: digits(sums / loads, 1), share: digits(100 * share, 1),
      blocks: digits(blocks), occupancy: digits(100 * blocks * 32 * warps / room("threads"), 1),
      tiles: digits(tiles), places: digits(places), waves: places ? digits(tiles / places, 2) : "",
      rounds: digits(rounds), last: digits(last), full: places ? digits(100 * tiles / (rounds * places), 1) : "", stages: digits(state.stages)
    };
    found.forEach(function (one, i) {
      texts["kernel" + (i + 1)] = digits(one.number);
      texts["rate" + (i + 1)] = one.way;
    });

    function box(x, y, width, height) { return "M" + at(x) + " " + at(y) + "h" + at(width) + "v" + at(height) + "h" + at(-width) + "z"; }
    var strip = state.BK * SCALE, wide = BN * SCALE, high = BM * SCALE;
    var part = { shared: shared / (room("shared") * 1024), registers: up(registers, 8) * 256 * warps / room("registers"), threads: 32 * warps / room("threads") };
    var held = "", over = "", first = "", taken = "", free = "";
    Object.keys(part).forEach(function (what, i) {
      var y = 22 + 32 * i;
      for (var block = 0; block < blocks; block++) held += box(X + block * part[what] * WIDE, y, part[what] * WIDE - (blocks < 16 ? 1 : 0.4), 10);
      if (part[what] > 1) over += box(X, y, WIDE, 10);
      if (fit[what] === blocks) first += "M" + (X - 3) + " " + (y + 5) + "l-7 -4v8z";
    });
    for (var row = 0; row < Math.min(rounds, ROWS); row++) {
      var y = 127 + 10 * row, isLast = row === Math.min(rounds, ROWS) - 1;
      if (rounds > ROWS && row === ROWS - 2) {
        free += "M" + X + " " + (y + 3.5) + "h" + WIDE;
        continue;
      }
      free += box(X, y, WIDE, 7);
      taken += box(X, y, WIDE * (isLast ? last / places : 1), 7);
    }
    return {
      says: says, texts: texts,
      marks: {
        a: { d: box(LEFT - 2 - strip, TOP, strip, high) }, b: { d: box(LEFT, TOP - 2 - strip, wide, strip) },
        c: { d: box(LEFT, TOP, wide, high) }, t: { d: box(LEFT, TOP, state.TN * SCALE, state.TM * SCALE) },
        shared: { text: texts.shared }, registers: { text: digits(registers) }, threads: { text: texts.threads }, waves: { text: texts.waves },
        held: { d: held }, over: { d: over }, first: { d: first }, taken: { d: taken }, free: { d: free }
      }
    };
  },

  /* Kernels that ran with these tiles on this job, fp32 and square: number, name, and the way to their rate. */
  measured: function (state, data) {
    var shape = data.given.shapes[this.shape(state, data)], N = state.N;
    if (!shape || state.bytes !== 4 || state.M !== N) return [];
    return shape.kernels.map(function (kernel) {
      var name = kernel[1], ways = [["sizes", name, "n" + N], ["odd", name, "n" + N]];
      if (N === 4096) ways.unshift(["ladder", name], ["shapes", name]);
      return { number: kernel[0], name: name, way: ways.find(function (way) {
        return way.reduce(function (found, part) { return found && found[part]; }, data);
      }) };
    }).filter(function (one) { return one.way; });
  },

  /* The measured shape that has these tiles, or "own". */
  shape: function (state, data) {
    var tile = String(this.TILE.map(function (knob) { return state[knob]; })), shapes = data.given.shapes;
    return Object.keys(shapes).find(function (name) { return String(shapes[name].tile) === tile; }) || "own";
  },

  /* A measured shape turns the other knobs, and they turn this one. */
  turn: function (name, state, data) {
    var TILE = this.TILE, shapes = data.given.shapes, to = {}, least = Infinity, chosen = state.shape;
    if (name !== "shape" || chosen === "own") return { shape: this.shape(state, data) };
    if (chosen === "near") {
      Object.keys(shapes).forEach(function (one) {
        var far = 0;
        TILE.forEach(function (knob, i) { far += Math.abs(Math.log2((1 + state[knob]) / (1 + shapes[one].tile[i]))); });
        if (far < least) { least = far; chosen = one; }
      });
    }
    TILE.forEach(function (knob, i) { to[knob] = shapes[chosen].tile[i]; });
    to.shape = chosen;
    to.bytes = 4;
    return to;
  }
};
