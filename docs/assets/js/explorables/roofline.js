/* Roofline: what a card allows a kernel, by its operations for each byte. Twin of charts/explorables/roofline.py. */
(function () {
  "use strict";
  var digits = PercentOfPeak.digits, at = PercentOfPeak.at, short = PercentOfPeak.short;
  var EIGHTHS = 8, LOWEST = -4, LEFT = 36, RIGHT = 331, TOP = 24, FLOOR = 194, SLOW = -1.5, FAST = 3.5;

  function xOf(intensity) { return LEFT + (Math.log2(intensity) - LOWEST) / 16 * (RIGHT - LEFT); }
  function yOf(rate) { return FLOOR - (Math.log10(rate) - SLOW) / (FAST - SLOW) * (FLOOR - TOP); }

  PercentOfPeak.explorables.roofline = {
    work: function (state, data) {
      var card = data.given[state.card], peak = card[state.math].value, bandwidth = card.bandwidth.value;
      var intensity = Math.pow(2, state.place / EIGHTHS + LOWEST), ridge = peak * 1e3 / bandwidth;
      var here = data.card === state.card && state.math === "fp32";
      var jobs = !here ? [] : Object.keys(data.intensity).filter(function (name) {
        return Math.abs(Math.log2(data.intensity[name].value / intensity)) <= 0.5 / EIGHTHS;
      });
      if (jobs.length) intensity = data.intensity[jobs[0]].value;
      function attainable(intensity) { return Math.min(peak, intensity * bandwidth / 1e3); }
      var rate = attainable(intensity), x = xOf(intensity), y = yOf(rate);
      var texts = {
        place: short(intensity), rate: short(rate), ridge: short(ridge), share: digits(100 * rate / peak),
        card: ["given", state.card, "name"], peak: ["given", state.card, state.math], bandwidth: ["given", state.card, "bandwidth"]
      };
      function met(number) {
        var found = number < jobs.length;
        return { cx: at(x), cy: at(yOf(found ? data.rate[jobs[number]].value : rate)), visibility: found ? "visible" : "hidden" };
      }
      jobs.slice(0, 2).forEach(function (name, number) {
        texts["job" + number] = ["names", name];
        texts["rate" + number] = ["rate", name];
      });
      return {
        says: [intensity < ridge ? "memory" : "arithmetic"].concat(["job", "also"].slice(0, jobs.length), here ? [] : ["elsewhere"]),
        texts: texts,
        marks: {
          roof: { d: "M" + at(LEFT) + " " + at(yOf(attainable(Math.pow(2, LOWEST)))) + "L" + at(xOf(ridge)) + " " + at(yOf(peak)) + "H" + at(RIGHT) },
          ridge: { transform: "translate(" + at(xOf(ridge)) + " 0)" },
          bend: { text: short(ridge) },
          drop: { d: "M" + at(x) + " " + at(FLOOR) + "V" + at(y) },
          you: { cx: at(x), cy: at(y) }, met0: met(0), met1: met(1),
          jobs: { visibility: here ? "visible" : "hidden" }
        }
      };
    },
    drag: function (state, x) {
      return { place: Math.round((x - LEFT) / (RIGHT - LEFT) * 16 * EIGHTHS) };
    }
  };
})();
