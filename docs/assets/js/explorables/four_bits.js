/* Four bits and a shared scale. Twin of charts/explorables/four_bits.py. */
(function () {
  "use strict";
  var at = PercentOfPeak.at, single = Math.fround, abs = Math.abs, MOST = 1e6, E2M1 = [0, 0.5, 1, 1.5, 2, 3, 4, 6], E4M3 = [];
  var FROM = { x: 0, q: 2, c: 2, b: 3, m: 4 }, WAYS = ["largest", "", "codes", "decoded", "error"];
  for (var i = 0; i < 127; i++) E4M3.push(i < 8 ? i / 512 : (8 + i % 8) * Math.pow(2, (i >> 3) - 10));

  function nearest(numbers, x) {
    return numbers.reduce(function (best, number, code) {
      var more = abs(number - x) - abs(numbers[best] - x);
      return more < 0 || !more && code % 2 < best % 2 ? code : best;
    }, 0);
  }
  function told(x) { return String(Number(x.toPrecision(4)) || 0).replace(/-/g, "−"); }
  function most(numbers) { return numbers.indexOf(Math.max.apply(null, numbers)); }

  PercentOfPeak.explorables.four_bits = {
    work: function (state) {
      var way = state.scale, fits = state.numbers.every(function (x) { return abs(x) <= MOST; });
      var numbers = state.numbers.map(function (x) { return fits ? single(x) : 0; }), sizes = numbers.map(abs), first = most(sizes);
      var largest = sizes[first], above = 1, wanted = 1, scale = 1;
      if (way === "power") scale = wanted = Math.pow(2, Math.max(Math.floor(Math.log2(largest)) - 2, -127));
      else if (way !== "plain") {
        if (way === "second" && largest) above = Math.max(single(largest / 2688), Math.pow(2, -126));
        wanted = single(largest / single(6 * above));
        scale = E4M3[Math.max(nearest(E4M3, wanted), 1)];
      }
      var step = single(scale * above), over = numbers.map(function (x) { return single(x / step); }), zeros = 0, ends = 0, off = 0, places = "";
      var codes = over.map(function (x, i) { return nearest(E2M1, abs(x)) + (numbers[i] < 0 || 1 / numbers[i] < 0 ? 8 : 0); });
      var back = codes.map(function (code) { return single((code > 7 ? -1 : 1) * E2M1[code % 8] * step); });
      var misses = numbers.map(function (x, i) { return abs(x - back[i]); }), worst = most(misses), marks = {};
      numbers.forEach(function (x, i) {
        var code = codes[i], column = {
          x: told(x), q: told(over[i]), c: [code >> 3, String(code >> 2 & 1) + (code >> 1 & 1), code & 1].join(" "), b: told(back[i]), m: told(misses[i])
        };
        zeros += code % 8 === 0 && x !== 0;
        ends += code % 8 === 7;
        off += misses[i];
        if (fits && state.at > 1) places += "M" + at(20 + 48 * Math.min(abs(over[i]), 6.5)) + " 31v10";
        Object.keys(column).forEach(function (name) { marks[name + i] = { text: fits && state.at >= FROM[name] ? column[name] : "" }; });
      });
      marks.places = { d: places };
      marks.now = { d: fits ? "M8 " + at(85 + 14.5 * (state.at === 4 ? worst : first)) + "h320v14.5h-320z" : "" };
      return {
        says: [fits ? WAYS[state.at] || way : "too_large"], marks: marks, most: {},
        texts: {
          largest: told(largest), wanted: told(wanted), scale: told(scale), above: told(above), step: told(step), zeros: String(zeros),
          ends: String(ends), off: told(off), worst: told(misses[worst]), which: told(numbers[worst])
        }
      };
    }
  };
})();
