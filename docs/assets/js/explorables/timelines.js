/* Two timelines: a cursor over what each warpgroup did when. Twin of charts/explorables/timelines.py. */
(function () {
  "use strict";
  var digits = PercentOfPeak.digits, at = PercentOfPeak.at, X = 1, WIDE = 345, HIGH = 14, TOP = 34, FLOOR = 234;
  var WAITS = 0, MULTIPLIES = 1, MEETS = 2, ASKS = 3, DOES = ["waits", "multiplies", "meets", "asks"], GROUPS = ["wide", "roles"];
  var LANES = { w0: ["wide", 0, 64], w1: ["wide", 1, 96], r0: ["roles", 0, 148], r1: ["roles", 1, 180], r2: ["roles", 2, 212] };

  function spans(name, data) {
    var columns = data[LANES[name][0]].value;
    return columns.lane.map(function (lane, i) {
      return { lane: lane, does: columns.does[i], begin: columns.from_cycles[i], end: columns.to_cycles[i] };
    }).filter(function (span) { return span.lane === LANES[name][1]; });
  }
  function chosen(of) { return GROUPS.filter(function (trace) { return of === "both" || of === trace; }); }
  function last(data) {
    return Math.max.apply(null, GROUPS.map(function (trace) { return Math.max.apply(null, data[trace].value.to_cycles); }));
  }
  function events(of, data) {
    var seen = new Set();
    chosen(of).forEach(function (trace) {
      data[trace].value.from_cycles.concat(data[trace].value.to_cycles).forEach(function (tick) { seen.add(tick); });
    });
    return Array.from(seen).sort(function (a, b) { return a - b; });
  }
  function ends(name, now, tick, data) {
    if (!now || now.does === MULTIPLIES || now.does === ASKS) return "by_nobody";
    if (now.does === WAITS) return name === "r0" ? "by_consumers" : "by_copy";
    /* At a barrier for everybody whoever comes last ends the wait. */
    var other = spans(name === "w0" ? "w1" : "w0", data).filter(function (span) { return span.does === MEETS; })
      .reduce(function (near, span) { return near && Math.abs(near.end - now.end) <= Math.abs(span.end - now.end) ? near : span; }, null);
    return other && other.begin > tick ? "by_other" : "by_both";
  }

  PercentOfPeak.explorables.timelines = {
    work: function (state, data) {
      var end = last(data), unit = (WIDE - 2 * X) / end, tick = Math.min(state.tick, Math.floor(end)), seen = events(state.of, data);
      function x(cycle) { return X + cycle * unit; }
      var texts = {
        tick: digits(tick), events: digits(seen.length), event: digits(seen.filter(function (one) { return one <= tick; }).length)
      };
      var marks = {
        cursor: { d: "M" + at(x(tick)) + " " + at(TOP + 16) + "V" + at(FLOOR) }, grip: { cx: at(x(tick)), cy: at(FLOOR) }
      };
      Object.keys(LANES).forEach(function (name) {
        var own = spans(name, data), y = LANES[name][2], before = -1, later = true, now;
        own.forEach(function (span) {
          if (span.begin <= tick && tick < span.end) now = now || span;
          if (span.end <= tick) before = Math.max(before, span.end);
          if (span.begin > tick) later = false;
        });
        var does = now ? DOES[now.does] : before < 0 ? "earlier" : later ? "later" : "between";
        if (does === "waits") does = name === "r0" ? "place" : "tile";
        texts[name] = ["words", does];
        texts[name + "_since"] = now || before >= 0 ? digits(now ? now.begin : before) : ["words", "began"];
        texts[name + "_end"] = ["words", ends(name, now, tick, data)];
        marks[name] = { d: now ? "M" + at(x(now.begin)) + " " + y + "h" + at((now.end - now.begin) * unit) + "v" + HIGH + "h" + at((now.begin - now.end) * unit) + "z" : "" };
      });
      return { says: ["at"].concat(chosen(state.of)), texts: texts, marks: marks, most: { tick: Math.floor(end) } };
    },

    /* From one event to the next, or to the one before. */
    step: function (state, by, data) {
      var seen = events(state.of, data), tick = state.tick;
      if (by < 0) seen.reverse();
      var to = seen.find(function (one) { return by * (one - tick) > 0; });
      return to === undefined ? tick : to;
    },
    drag: function (state, x, y, data) {
      var end = last(data);
      return { tick: Math.round(Math.min(Math.max((x - X) / (WIDE - 2 * X), 0), 1) * end) };
    }
  };
})();
