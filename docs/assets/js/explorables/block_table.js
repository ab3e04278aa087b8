/* Block tables: six requests write into pages that are handed out, or reserved. Twin of charts/explorables/block_table.py. */
PercentOfPeak.explorables.block_table = {
  states: function (size, given) {
    "use strict";
    var count = given.room / size, slips = given.slips, free = [], waiting = slips.map(function (_, i) { return i; }), here = [];
    for (var i = count - 1; i >= 0; i--) free.push((7 * i + 3) % count);
    var found = [{ here: [], waiting: waiting.length, lacks: false }];
    while (waiting.length || here.length) {
      here.forEach(function (guest) {
        if (guest.tokens === slips[guest.who]) free = free.concat(guest.table.slice().reverse());
      });
      here = here.filter(function (guest) { return guest.tokens < slips[guest.who]; }).map(function (guest) {
        return { who: guest.who, tokens: guest.tokens, table: guest.table.slice() };
      });
      here.forEach(function (guest) {
        if (guest.tokens === size * guest.table.length) guest.table.push(free.pop());
      });
      while (waiting.length && here.length < given.seats && free.length) here.push({ who: waiting.shift(), tokens: 0, table: [free.pop()] });
      here.forEach(function (guest) { guest.tokens++; });
      if (here.length) found.push({ here: here, waiting: waiting.length, lacks: waiting.length > 0 && here.length < given.seats });
    }
    return found;
  },

  work: function (state, data) {
    "use strict";
    var digits = PercentOfPeak.digits, at = PercentOfPeak.at, X = 20, WIDE = 26, HIGH = 20, PITCH = 42, TOP = 32, COLUMNS = 12;
    var given = data.given, size = state.size, states = this.states(size, given), step = Math.min(state.step, states.length - 1);
    var now = states[step], here = now.here, held = 0, used = 0, says = ["going"];
    here.forEach(function (guest) {
      held += size * guest.table.length;
      used += guest.tokens;
    });
    if (!step) says = ["start"];
    else if (step === states.length - 1) says.push("done");
    else if (now.waiting) says.push(now.lacks ? "no_page" : "waiting");
    var texts = {
      step: digits(step), steps: digits(states.length - 1), seated: digits(here.length), waiting: digits(now.waiting), held: digits(held),
      used: digits(used), empty: digits(held - used), share: held ? digits(100 * (held - used) / held) : "0", room: digits(given.room)
    };
    function x(where) { return X + WIDE * (where % COLUMNS); }
    function y(where) { return TOP + PITCH * Math.floor(where / COLUMNS); }
    function box(x, y, width, height) { return "M" + at(x) + " " + at(y) + "h" + at(width) + "v" + at(height) + "h" + at(-width) + "z"; }
    function letter(guest) { return String.fromCharCode(65 + guest.who); }
    var letters = [], part = { tokens: "", waste: "", pages: "" }, marks = {};
    here.forEach(function (guest) {
      for (var place = 0; place < size * guest.table.length; place++) {
        var where = guest.table[Math.floor(place / size)] * size + place % size, filled = place < guest.tokens;
        letters[where] = filled ? letter(guest) : letter(guest).toLowerCase();
        part[filled ? "tokens" : "waste"] += box(x(where) + 1, y(where) + 1, WIDE - 2, HIGH - 2);
      }
    });
    for (var where = 0; where < given.room; where++) {
      var first = where % size === 0;
      if (first) part.pages += box(x(where), y(where), size * WIDE, HIGH);
      marks["n" + where] = { text: first ? digits(where / size) : "" };
      marks["p" + where] = { text: letters[where] || "" };
    }
    Object.keys(part).forEach(function (name) { marks[name] = { d: part[name] }; });
    for (var seat = 0; seat < given.seats; seat++) {
      var guest = here[seat];
      marks["t" + seat] = { text: guest ? letter(guest) + ", " + guest.tokens + " of " + given.slips[guest.who] + ": " + guest.table.join(" ") : "" };
    }
    return { says: says, texts: texts, marks: marks, most: { step: states.length - 1 } };
  }
};
