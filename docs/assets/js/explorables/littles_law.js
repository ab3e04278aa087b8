/* Little's law: bytes in flight, and the bandwidth that they allow. Twin of charts/explorables/littles_law.py. */
(function () {
  "use strict";
  var digits = PercentOfPeak.digits, at = PercentOfPeak.at;
  var SEATS = 64, LANES = 32, LEFT = 36, RIGHT = 337, TOP = 24, FLOOR = 174, LOW = -3, OCTAVES = 11;

  function allowed(kib, data) {
    return 2 * kib * 1024 * data.sms.value * data.clock.value / data.trip.value / 1e3;
  }
  function place(key, data) { return 16 * Number(key[1]) * LANES * SEATS * data.seats[key].value / 1024; }
  function short(kib) { return digits(kib, kib === Math.floor(kib) ? 0 : kib < 1 ? 3 : 1); }
  function xOf(kib) { return LEFT + (Math.log2(kib) - LOW) / OCTAVES * (RIGHT - LEFT); }
  function yOf(rate, sheet) { return FLOOR - rate / (1.05 * sheet) * (FLOOR - TOP); }

  PercentOfPeak.explorables.littles_law = {
    work: function (state, data) {
      var warps = state.warps, size = state.bytes, sheet = data.sheet.value, kib = warps * LANES * size / 1024;
      var rate = allowed(kib, data), least = Math.min(rate, sheet), near, nearest = [Infinity, Infinity];
      Object.keys(data.rate).forEach(function (key) {
        var there = place(key, data), vectors = 16 * Number(key[1]);
        var far = [Math.max(there / kib, kib / there), Math.max(vectors / size, size / vectors)];
        if (far[0] < nearest[0] || far[0] === nearest[0] && far[1] < nearest[1]) { near = key; nearest = far; }
      });
      return {
        says: [rate < sheet ? "few" : "enough", nearest[0] === 1 && nearest[1] === 1 ? "measured" : "near"],
        texts: {
          warps: digits(warps), bytes: digits(size), kib: short(kib), allowed: digits(least), would: digits(rate),
          share: digits(100 * least / sheet), seats: digits(100 * warps / SEATS), sheet: ["sheet"],
          near: short(place(near, data)), rate: ["rate", near]
        },
        marks: {
          drop: { d: "M" + at(xOf(kib)) + " " + at(FLOOR) + "V" + at(yOf(least, sheet)) },
          you: { cx: at(xOf(kib)), cy: at(yOf(least, sheet)) },
          met: { cx: at(xOf(place(near, data))), cy: at(yOf(data.rate[near].value, sheet)) }
        }
      };
    },
    drag: function (state, x) {
      var kib = Math.pow(2, (x - LEFT) / (RIGHT - LEFT) * OCTAVES + LOW);
      return { warps: Math.max(1, Math.min(SEATS, Math.round(kib * 1024 / LANES / state.bytes))) };
    }
  };
})();
