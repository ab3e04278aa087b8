/* Layouts: from an index to its coordinate, its products and its address. Twin of charts/explorables/layouts.py. */
(function () {
  "use strict";
  var at = PercentOfPeak.at, MOST = 64, ROWS = 8, COLUMNS = 16, STEPS = 99, NUMBERS = 4;
  var X = 20, TOP = 32, WIDE = 325, HIGH = 136, ORDER = 282, CELL = 20.3, LINE = 16;

  function prod(numbers) { return numbers.reduce(function (a, b) { return a * b; }, 1); }
  function digitsOf(index, sizes) {
    return sizes.map(function (size) {
      var digit = index % size;
      index = Math.floor(index / size);
      return digit;
    });
  }
  function addressOf(index, sizes, steps) {
    return digitsOf(index, sizes).reduce(function (sum, digit, i) { return sum + digit * steps[i]; }, 0);
  }
  function innerOf(name, rows, columns) {
    var count = rows * columns, quarter = Math.max(1, Math.floor(count / 4));
    return {
      none: [[count, 1]], second: [[Math.max(1, Math.floor(count / 2)), 2]], turned: [[columns, rows], [rows, 1]], row: [[columns, rows]],
      tile: [[Math.min(2, rows), 1], [Math.min(2, columns), rows]], dealt: [[Math.min(4, count), quarter], [quarter, 1]]
    }[name];
  }
  function sizeOf(pair) { return pair[0]; }
  function stepOf(pair) { return pair[1]; }
  /* For each number of the inner layout its own; null where no strides say it. */
  function composed(sizes, steps, inner) {
    var found = [];
    for (var n = 0; n < inner.length; n++) {
      var count = inner[n][0], step = inner[n][1], pairs = [];
      for (var i = 0; i < sizes.length; i++) {
        if (step >= sizes[i]) {
          if (step % sizes[i]) return null;
          step /= sizes[i];
          continue;
        }
        var room = Math.floor(sizes[i] / step), taken = Math.min(count, room), last = pairs[pairs.length - 1];
        if (sizes[i] % step || count > room && count % room) return null;
        if (taken > 1 && last && last[0] * last[1] === step * steps[i]) last[0] *= taken;
        else if (taken > 1) pairs.push([taken, step * steps[i]]);
        count = Math.floor(count / taken);
        step = 1;
      }
      if (count > 1) return null;
      found.push(pairs.length ? pairs : [[1, 0]]);
    }
    var own = [].concat.apply([], found), total = prod(inner.map(sizeOf));
    for (var n = 0; n < total; n++) {
      if (addressOf(n, own.map(sizeOf), own.map(stepOf)) !== addressOf(addressOf(n, inner.map(sizeOf), inner.map(stepOf)), sizes, steps)) return null;
    }
    return found;
  }
  function brackets(numbers) { return numbers.length === 1 ? String(numbers[0]) : "(" + numbers.join(", ") + ")"; }
  function written(parts) {
    return [0, 1].map(function (side) {
      return brackets(parts.map(function (part) { return brackets(part.map(function (pair) { return pair[side]; })); }));
    }).join(":");
  }
  function some(part) { return part.length; }
  function wrongOf(state) {
    var split = state.split, sizes = state.shape;
    if (!sizes.every(function (size) { return size >= 1 && size % 1 === 0; })) return "no_number";
    if (!state.stride.every(function (step) { return step >= 0 && step <= STEPS && step % 1 === 0; })) return "no_number";
    if (sizes.length !== state.stride.length) return "unlike";
    var rows = prod(sizes.slice(0, split)), columns = prod(sizes.slice(split));
    return rows > ROWS || columns > COLUMNS || rows * columns > MOST ? "too_many" : "";
  }
  /* The grid of a state, and the indices of the outer layout that it walks through. */
  function gridOf(state) {
    var wrong = wrongOf(state), sizes = wrong ? [1] : state.shape, rows = prod(sizes.slice(0, state.split)), columns = prod(sizes.slice(state.split));
    var inner = innerOf(state.inner, rows, columns), walk = [];
    var counts = inner.map(sizeOf), by = inner.map(stepOf);
    for (var i = 0; i < prod(counts); i++) walk.push(addressOf(i, counts, by));
    return {
      wrong: wrong, sizes: sizes, steps: wrong ? [0] : state.stride, rows: rows, columns: columns, inner: inner, walk: walk,
      wide: Math.min(40, WIDE / columns), high: Math.min(26, HIGH / rows)
    };
  }

  PercentOfPeak.explorables.layouts = {
    work: function (state) {
      var grid = gridOf(state), sizes = grid.sizes, steps = grid.steps, rows = grid.rows, walk = grid.walk, total = walk.length, wrong = grid.wrong;
      var hidden = state.address === "hidden", split = state.split, index = Math.min(state.at, total - 1), middle = walk[index];
      var digits = digitsOf(middle, sizes), together = composed(sizes, steps, grid.inner), says = [wrong];
      if (!wrong) {
        says = [state.inner === "none" ? "alone" : "through", "coordinate", hidden ? "hidden" : "products"];
        if (state.inner !== "none" && !hidden) says.push(together ? "one" : "several");
      }
      var pairs = sizes.map(function (size, i) { return [size, steps[i]]; });
      var texts = {
        at: String(index), last: String(total - 1), middle: String(middle), sizes: String(state.shape.length), strides: String(state.stride.length),
        outer: written([pairs.slice(0, split), pairs.slice(split)].filter(some)),
        inner: written(grid.inner.map(function (pair) { return [pair]; })),
        coordinate: brackets([digits.slice(0, split), digits.slice(split)].filter(some).map(brackets)),
        products: digits.map(function (digit, i) { return digit + "\u00a0×\u00a0" + steps[i]; }).join(" + "),
        address: hidden ? "?" : String(addressOf(middle, sizes, steps)), composed: together ? written(together) : ""
      };

      var part = { cells: "", reached: "", walked: "", now: "", order: "", here: "" }, marks = {};
      function box(x, y, width, height) { return "M" + at(x) + " " + at(y) + "h" + at(width) + "v" + at(height) + "h" + at(-width) + "z"; }
      for (var cell = 0; cell < MOST; cell++) {
        var to = { x: "0", y: "0", text: "" }, nth = walk.indexOf(cell), text = "";
        if (!wrong && cell < rows * grid.columns) {
          var wide = grid.wide, high = grid.high, x = X + wide * Math.floor(cell / rows), y = TOP + high * (cell % rows);
          if (nth < 0 ? !hidden : !hidden || nth < index) to.text = String(addressOf(cell, sizes, steps));
          to.x = at(x + wide / 2);
          to.y = at(y + high / 2 + 4);
          part.cells += box(x, y, wide, high);
          if (nth >= 0 && state.inner !== "none") part.reached += box(x + 1, y + 1, wide - 2, high - 2);
          if (nth >= 0 && nth < index) part.walked += box(x + 1, y + 1, wide - 2, high - 2);
          if (cell === middle) {
            part.now = box(x, y, wide, high);
            to.text = texts.address;
          }
        }
        marks["c" + cell] = to;
        if (!wrong && cell < total) {
          var left = X + CELL * (cell % COLUMNS), top = ORDER + LINE * Math.floor(cell / COLUMNS);
          part.order += box(left, top, CELL, LINE);
          if (cell === index) part.here = box(left, top, CELL, LINE);
          text = cell < index || !hidden ? String(addressOf(walk[cell], sizes, steps)) : cell === index ? "?" : "";
        }
        marks["o" + cell] = { text: text };
      }
      for (var i = 0; i < NUMBERS; i++) {
        var there = !wrong && i < sizes.length;
        marks["n" + i] = { text: there ? String(sizes[i]) : "" };
        marks["d" + i] = { text: there ? String(digits[i]) : "" };
        marks["s" + i] = { text: there ? String(steps[i]) : "" };
        marks["p" + i] = { text: there && !hidden ? String(digits[i] * steps[i]) : "" };
      }
      Object.keys(part).forEach(function (name) { marks[name] = { d: part[name] }; });
      marks.sum = { text: wrong ? "" : "together " + texts.address };
      return { says: says, texts: texts, marks: marks, most: { at: total - 1 } };
    },

    /* A finger on a cell goes to the index that leads there. */
    drag: function (state, x, y) {
      var grid = gridOf(state), column = Math.floor((x - X) / grid.wide), row = Math.floor((y - TOP) / grid.high);
      var to = row >= 0 && row < grid.rows && column >= 0 && column < grid.columns ? grid.walk.indexOf(row + grid.rows * column) : -1;
      return to < 0 ? {} : { at: to };
    },

    /* A layout to begin with fills both lists; a list of one's own is one's own. */
    turn: function (name, state, data) {
      if (name === "shape" || name === "stride" || name === "split") return { layout: "own" };
      if (name === "inner") return { at: 0 };
      if (name !== "layout" || state.layout === "own") return {};
      var to = data.given.layouts[state.layout];
      return { shape: to[0], stride: to[1], split: to[2], at: 0 };
    }
  };
})();
