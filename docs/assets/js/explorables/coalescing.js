/* Coalescing: how many sectors of 32 bytes a warp's 32 threads ask for. Twin of charts/explorables/coalescing.py. */
PercentOfPeak.explorables.coalescing = {
  work: function (state, data) {
    "use strict";
    var digits = PercentOfPeak.digits, at = PercentOfPeak.at;
    var LANES = 32, SECTOR = 32, LINE = 128, BOX = 20, HIGH = 12, PITCH = 21, ROWS = 8, TOP = 24;
    var wanted = new Set(), sectors = new Set(), lines = new Set();
    for (var lane = 0; lane < LANES; lane++) {
      var address = state.size * (state.offset + lane * state.stride);
      wanted.add(address);
      sectors.add(Math.floor(address / SECTOR));
      lines.add(Math.floor(address / LINE));
    }
    lines = Array.from(lines);
    var share = state.size * wanted.size / (SECTOR * sectors.size), near, least = Infinity;
    Object.keys(data.time).forEach(function (key) {
      var s = Number(key.slice(1)), far = state.stride ? Math.max(s / state.stride, state.stride / s) : s;
      if (far < least) { near = s; least = far; }
    });
    function box(address, width, inset) {
      var line = lines.indexOf(Math.floor(address / LINE));
      var x = 4.2 * PITCH * Math.floor(line / ROWS) + PITCH * (Math.floor(address / SECTOR) % 4) + address % SECTOR / SECTOR * BOX;
      return "M" + at(x) + " " + at(TOP + 15 * (line % ROWS) + inset) + "h" + at(width / SECTOR * BOX) +
        "v" + at(HIGH - 2 * inset) + "h" + at(-width / SECTOR * BOX) + "z";
    }
    function boxes(found, width, inset) {
      return Array.from(found, function (address) { return box(address, width, inset); }).join("");
    }
    var slots = [], carried = Array.from(sectors, function (sector) { return sector * SECTOR; });
    lines.forEach(function (line) { for (var i = 0; i < 4; i++) slots.push(LINE * line + SECTOR * i); });
    return {
      says: [
        share === 1 ? "all" : state.stride ? "some" : "one",
        state.size === 4 && !state.offset && state.stride === near ? "measured" : "near"
      ],
      texts: {
        stride: digits(state.stride), offset: digits(state.offset), size: digits(state.size),
        sectors: digits(sectors.size), lines: digits(lines.length), wanted: digits(state.size * wanted.size),
        carried: digits(SECTOR * sectors.size), share: digits(100 * share, 100 * share === Math.floor(100 * share) ? 0 : 1), near: digits(near), time: ["time", "s" + near]
      },
      marks: {
        lines: { d: boxes(slots, SECTOR, 0) }, carried: { d: boxes(carried, SECTOR, 0) }, used: { d: boxes(wanted, state.size, 1.5) }
      }
    };
  }
};
