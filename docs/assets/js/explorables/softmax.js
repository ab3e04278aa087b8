/* Softmax of a row whose scores come tile by tile, in fp32 as the kernel has it. Twin of charts/explorables/softmax.py. */
PercentOfPeak.explorables.softmax = {
  work: function (state) {
    "use strict";
    var digits = PercentOfPeak.digits, at = PercentOfPeak.at, f = Math.fround, NEVER = -1e30, MOST = 8;
    var X = 54, UNIT = 11.5, Y = 30, PITCH = 17, BAR = 206, WIDE = 106;
    var never = state.mask === "never" ? NEVER : -Infinity, width = state.width;
    var scores = state.scores.map(function (s) { return f(s === -Infinity ? never : s); }), count = scores.length;
    function e(x) { return f(Math.exp(f(x))); }

    /* A sum and a plate with more scores, against the ruler m. */
    function summed(from, to, m, l, a) {
      for (var i = from; i < to; i++) {
        var p = e(scores[i] - m);
        l = f(l + p);
        a = f(a + f(p * 10 * (i + 1)));
      }
      return { l: l, a: a, out: f(a / l) };
    }
    var m = f(never), l = 0, a = 0, states = [{ kind: "start", from: 0, to: 0, m: m, l: l, a: a, old: NaN, factor: NaN }];
    for (var from = 0; from < count; from += width) {
      var to = Math.min(from + width, count), old = m;
      m = Math.max.apply(null, [m].concat(scores.slice(from, to)));
      var factor = e(old - m);
      l = f(l * factor);
      a = f(a * factor);
      states.push({ kind: "repair", from: from, to: to, m: m, l: l, a: a, old: old, factor: factor });
      var more = summed(from, to, m, l, a);
      l = more.l;
      a = more.a;
      states.push({ kind: "add", from: from, to: to, m: m, l: l, a: a, old: old, factor: factor });
    }
    states.push({ kind: "divide", from: 0, to: count, m: m, l: l, a: a, old: NaN, factor: NaN });
    var step = Math.min(state.step, states.length - 1), now = states[step], out = f(now.a / now.l);
    var plain = summed(0, count, m, 0, 0).out, bare = summed(0, count, 0, 0, 0);

    var says;
    if (now.kind === "start") says = ["start"];
    else if (now.kind === "repair") says = [isNaN(now.factor) ? "broken" : step === 1 ? "first" : now.m > now.old ? "higher" : "same"];
    else if (now.kind === "add") says = [isNaN(now.l) ? "still_broken" : "add"];
    else if (isNaN(plain)) says = ["no_softmax"];
    else {
      says = isNaN(out) ? ["nothing_served", "only_plain"] : ["served", "agree"];
      says.push(bare.l === 0 ? "underflow" : !isFinite(bare.out) ? "overflow" :
        Math.abs(bare.out - plain) <= 1e-4 * Math.abs(plain) ? "without" : "lost");
    }

    function number(x, after) {
      if (isNaN(x)) return "NaN";
      if (!isFinite(x)) return x > 0 ? "∞" : "−∞";
      if (x <= NEVER / 2) return "−10³⁰";
      if (Math.abs(x) >= 1e9) return x.toExponential(2).replace("-", "−");
      var text = digits(x, after === undefined ? 2 : after).replace("-", "−");
      return after === undefined ? text.replace(/\.?0+$/, "") : text;
    }
    var texts = {
      step: digits(step), steps: digits(states.length - 1), tile: digits(Math.ceil(now.to / width)), tiles: digits((states.length - 2) / 2),
      brought: scores.slice(now.from, now.to).map(function (s) { return number(s); }).join(", "),
      old: number(now.old), m: number(now.m), factor: number(now.factor, 4), l: number(now.l, 4), a: number(now.a, 3),
      out: now.kind === "divide" ? number(out, 3) : "", plain: number(plain, 3), bare: number(bare.out, 3), bare_sum: number(bare.l, 4)
    };

    var part = { tiles: "", tile: "", late: "", fresh: "", past: "", ghost: "", kept: "", "new": "" }, marks = {};
    function place(s) { return X + UNIT * (Math.min(Math.max(s, -2), 10) + 2); }
    function bar(y, p) { return p > 0 ? "M" + BAR + " " + (y + 1) + "h" + at(p * WIDE) + "v10h" + at(-p * WIDE) + "z" : ""; }
    var done = now.kind === "add" || now.kind === "divide" ? now.to : now.from;
    for (var i = 0; i < MOST; i++) {
      var y = Y + PITCH * i, here = i < count, fresh = (now.kind === "repair" || now.kind === "add") && now.from <= i && i < now.to, p = "";
      if (here && scores[i] > NEVER) part[fresh ? "fresh" : i < done ? "past" : "late"] += "M" + at(place(scores[i]) - 4) + " " + (y + 6) + "a4 4 0 1 0 8 0a4 4 0 1 0 -8 0z";
      if (here && i % width === 0) part[fresh ? "tile" : "tiles"] += "M8 " + y + "h-6v" + (PITCH * Math.min(width, count - i) - 5) + "h6";
      if (here && i < done) {
        p = e(scores[i] - now.m);
        part[fresh ? "new" : "kept"] += bar(y, p);
        p = number(p, 3);
      }
      if (here && now.kind === "repair" && i < now.from) part.ghost += bar(y, e(scores[i] - now.old));
      marks["s" + i] = { text: here ? number(scores[i]) : "" };
      marks["p" + i] = { text: p };
    }
    function line(m) { return isNaN(m) || m <= NEVER ? "" : "M" + at(place(m)) + " " + (Y - 6) + "V" + (Y + PITCH * MOST); }
    part.ruler = line(now.m);
    part.before = line(now.kind === "repair" ? now.old : now.m);
    Object.keys(part).forEach(function (name) { marks[name] = { d: part[name] }; });
    ["m", "l", "a"].forEach(function (name) { marks[name] = { text: texts[name] }; });
    marks.out = { text: texts.out && "a / l = " + texts.out };
    marks.factor = { text: now.kind === "repair" && step > 1 ? "× " + texts.factor : "" };
    return { says: says, texts: texts, marks: marks, most: { step: states.length - 1 } };
  },

  /* A finger moves the score of the row where it came down, by halves. */
  drag: function (state, x, y, data, begins) {
    if (begins) this.row = Math.floor((y - 28) / 17);
    var scores = state.scores.slice();
    if (!(this.row in scores) || begins && x > 200) this.row = -1;
    if (this.row < 0) return {};
    scores[this.row] = Math.round(2 * Math.min(Math.max((x - 54) / 11.5 - 2, -2), 10)) / 2;
    return { scores: scores, row: "own" };
  },

  /* A row of scores to begin with fills the list; a list of one's own is one's own. */
  turn: function (name, state, data) {
    if (name === "row") return state.row === "own" ? {} : { scores: data.given.rows[state.row], step: 0 };
    return name === "scores" ? { row: "own" } : {};
  }
};
