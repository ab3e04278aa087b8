/* Bank conflicts: the longest queue at the 32 banks of shared memory. Twin of charts/explorables/bank_conflicts.py. */
PercentOfPeak.explorables.bank_conflicts = {
  work: function (state, data) {
    "use strict";
    var digits = PercentOfPeak.digits, at = PercentOfPeak.at, stride = state.stride;
    var BANKS = 32, PITCH = 10.78, WIDE = 8.8, RISE = 3.8, HIGH = 3, FLOOR = 150;
    function queuesOf(stride) {
      var queues = new Array(BANKS).fill(0);
      for (var lane = 0; lane < (stride ? 32 : 1); lane++) queues[lane * stride % BANKS]++;
      return queues;
    }
    var queues = queuesOf(stride), longest = Math.max.apply(null, queues);
    var measured = Object.keys(data.time).map(function (key) { return Number(key.slice(1)); });
    var near = measured.includes(stride) ? stride : measured.find(function (s) {
      return Math.max.apply(null, queuesOf(s)) === longest;
    });
    function words(from, to) {
      return queues.map(function (count, bank) {
        var path = "";
        for (var turn = from; turn < Math.min(count, to); turn++)
          path += "M" + at(PITCH * bank) + " " + at(FLOOR - RISE * (turn + 1)) + "h" + at(WIDE) + "v" + at(HIGH) + "h" + at(-WIDE) + "z";
        return path;
      }).join("");
    }
    var x = PITCH * queues.indexOf(longest) + WIDE / 2;
    return {
      says: [longest > 1 ? "queue" : stride ? "free" : "same", near === stride ? "measured" : "near"],
      texts: {
        stride: digits(stride), busy: digits(queues.filter(Boolean).length), queue: digits(longest), near: digits(near),
        time: ["time", "s" + near], counted: ["counted", "s" + near]
      },
      marks: {
        first: { d: words(0, 1) }, waits: { d: words(1, 32) },
        longest: { x: at(x), y: at(FLOOR - RISE * longest - 4), text: digits(longest) }
      }
    };
  }
};
