/* The price of a token: a step by its bytes and its operations, and the bill. Twin of charts/explorables/token_price.py. */
(function () {
  "use strict";
  var digits = PercentOfPeak.digits, at = PercentOfPeak.at;
  var WIDE = 343, HIGH = 15, TOP = 36, PITCH = 60, MOST = 1e6, USABLE = 0.9, MET = { "7 8": "engine", "0 10": "alone", "10 10": "together" };
  var READERS = [1, 2, 3, 4, 6, 8, 12, 16, 20, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024];

  function three(value) {
    return digits(value, value === 0 ? 0 : value < 0.1 ? 4 : value < 1 ? 3 : value < 10 ? 2 : value < 100 ? 1 : 0);
  }
  function sum(a, b) { return a + b; }

  PercentOfPeak.explorables.token_price = {
    work: function (state, data) {
      var chip = state.chip, model = state.model, bits = state.bits, hour = state.prices[0], electricity = state.prices[1];
      var readers = READERS[state.readers], held = Math.pow(2, state.held), share = state.share / 100, busy = state.busy / 100;
      var fits = hour >= 0 && hour <= MOST && electricity >= 0 && electricity <= MOST;
      var peak = data.peak[chip].value, bandwidth = data.bandwidth[chip].value, memory = data.memory[chip].value;
      var watts = chip in data.watts ? data.watts[chip].value : 0;
      var caches = readers * held * data.cache[model].value * 1024 / 1e9;
      var stored = data.stored[model].value * bits / 8 + caches, cards = Math.ceil(stored / (USABLE * memory));
      var weights = data.read[model].value * bits / 8;
      var moves = (weights + caches) / bandwidth / cards;
      var multiplies = 2 * data.read[model].value * readers / (peak * 1e3) / cards;
      var floor = Math.max(moves, multiplies), took = floor / share, rate = readers / took;
      var ofFloor = 1e6 * floor / readers / 3600 * cards * hour;
      var waits = ofFloor / share - ofFloor, idles = ofFloor / share / busy - ofFloor / share;
      var joules = cards * watts * state.drawn / 100 * took / readers, power = joules / 3600 * electricity;
      var bill = ofFloor + waits + idles + power;
      var met = data.card === chip && model === "m8" && bits === 16 && MET[state.readers + " " + state.held] || "";
      var seen = met ? data[met].value : 1, moved = multiplies > moves ? 0 : floor;
      var says = !fits ? ["not_prices"] : [
        multiplies > moves ? "arithmetic" : "bytes", cards === 1 ? "one" : "several", watts ? "with_power" : "without_power"
      ].concat(met ? [met === "engine" ? "engine" : "step"] : []);
      var unit = " " + data.words.ms.html;
      var free = cards * memory - stored, marks = {};
      var rows = [
        [stored - caches, caches, 0, 0, free, 0],
        [moved * weights / (weights + caches), moved * caches / (weights + caches), floor - moved, took - floor, 0, 0],
        [0, 0, ofFloor, waits, idles, power]
      ];
      var heads = [
        "memory: " + digits(cards * memory, memory >= 1 ? 0 : 1) + " GB", "a step: " + three(1e3 * took) + unit,
        "a million tokens: " + three(bill)
      ];
      var notes = [
        "weights " + digits(stored - caches, 1) + ", caches " + digits(caches, 1) + ", free " + digits(free, 1) + " GB",
        "at the floor " + three(1e3 * floor) + ", everything else " + three(1e3 * (took - floor)) + unit,
        "floor " + three(ofFloor) + ", else " + three(waits) + ", idle " + three(idles) + (watts ? ", power " + three(power) : "")
      ];
      rows.forEach(function (parts, row) {
        var total = parts.reduce(sum, 0), x = 0;
        parts.forEach(function (size, part) {
          var wide = total > 0 ? WIDE * size / total : 0;
          marks["r" + row + part] = {
            d: fits && size > 0 ? "M" + at(x) + " " + at(TOP + PITCH * row) + "h" + at(wide) + "v" + at(HIGH) + "h" + at(-wide) + "z" : ""
          };
          x += wide;
        });
        marks["h" + row] = { text: fits ? heads[row] : "" };
        marks["n" + row] = { text: fits ? notes[row] : "" };
      });
      return {
        says: says, marks: marks, most: {},
        texts: {
          readers: digits(readers), held: digits(held), share: String(state.share), busy: String(state.busy),
          drawn: String(state.drawn), cards: digits(cards), ms: three(1e3 * took), floor: three(1e3 * floor),
          rate: digits(rate), gb: digits(weights + caches, 1), stored: digits(stored, 1), bill: three(bill),
          rent: three(ofFloor + waits + idles), power: three(power), joules: three(joules),
          paid: three(1e6 / seen / 3600 * hour / busy), chip: ["given", chip], peak: ["peak", chip],
          bandwidth: ["bandwidth", chip], seen: [met || "engine"], drew: ["joules"]
        }
      };
    }
  };
})();
