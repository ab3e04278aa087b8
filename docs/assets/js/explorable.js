/* Explorables: pictures with knobs. The page has the state that each begins with, drawn and said in words; here the knobs
   appear and the picture follows. What can be moved stands in explorables/, a file each: `work(state, data)` is pure
   arithmetic, the twin of the Python of that name, and tells which sentences, which texts and which places belong to a
   state. `drag(state, x, y, data, begins)`, if there is one, says which knobs a finger in the drawing turns, and
   `turn(name, state, data)` which others turn with the knob of that name. `step(state, by, data)` says where previous and
   next lead, where that is not the number before or behind. */
var PercentOfPeak = window.PercentOfPeak || {};
PercentOfPeak.explorables = {};

/* A number as the build writes it: so many digits behind the point, thousands apart. */
PercentOfPeak.digits = function (value, after) {
  var parts = value.toFixed(after || 0).split(".");
  parts[0] = parts[0].replace(/\B(?=(\d{3})+$)/g, ",");
  var text = parts.join(".");
  return /[1-9]/.test(text) ? text : text.replace("-", "");
};
/* About three digits, and no nought at the end that says nothing. */
PercentOfPeak.short = function (value) {
  return PercentOfPeak.digits(value, value >= 100 ? 0 : value >= 10 ? 1 : 2).replace(/(\.\d*?)0+$/, "$1").replace(/\.$/, "");
};
/* A place in a drawing, to a tenth of a pixel. */
PercentOfPeak.at = function (value) { return String(Number(value.toFixed(1)) || 0); };

(function () {
  "use strict";
  var words = PercentOfPeak.words.explorable;

  function escaped(text) {
    return text.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");
  }

  /* A sentence with its numbers: what is worked out is marked, what was recorded is a link to its row. */
  function filled(template, shown, data) {
    return escaped(template).replace(/\{(\w+)\}/g, function (hole, name) {
      var found = shown.texts[name];
      if (typeof found === "string") return '<span class="computed">' + escaped(found) + "</span>";
      return found.reduce(function (at, part) { return at[part]; }, data).html;
    });
  }

  /* What is said already is not said again; what the build wrote stays as other scripts have made it. */
  var last = new Map();
  function put(place, said) {
    var made = document.createElement("template");
    made.innerHTML = said;
    if (last.has(place) ? last.get(place) !== said : place.textContent !== made.content.textContent)
      place.replaceChildren(made.content);
    last.set(place, said);
  }

  function button(text, press) {
    var made = document.createElement("button");
    made.type = "button";
    made.textContent = text;
    made.addEventListener("click", press);
    return made;
  }

  function start(figure) {
    var kind = PercentOfPeak.explorables[figure.dataset.explorable];
    var plan = JSON.parse(figure.querySelector("script").textContent), data = plan.data;
    var form = figure.querySelector("form"), svg = figure.querySelector("svg"), says = figure.querySelector(".says");
    var row = figure.querySelector("tbody tr"), fields = Array.from(form.querySelectorAll("[data-knob]"));
    var state = {}, error = document.createElement("p");
    error.className = "wrong";
    error.setAttribute("role", "alert");

    /* Where the knobs stand; false while a list of numbers is none. */
    function read() {
      error.textContent = "";
      fields.forEach(function (field) {
        var value = field.value;
        if (field.type === "radio" && !field.checked) return;
        if (field.dataset.numbers) {
          var ends = field.dataset.numbers.split(" "), list = value.split(/[\s,;]+/).filter(Boolean).map(function (text) {
            return Number(text.replace("−", "-").replace(/^-(inf\w*|∞)$/i, "-Infinity"));
          });
          if (list.length < ends[0] || list.length > ends[1] || !list.every(function (x) { return x < Infinity; })) {
            error.textContent = words.numbers(ends[0], ends[1]);
            return;
          }
          state[field.dataset.knob] = list;
        } else state[field.dataset.knob] = value !== "" && isFinite(value) ? Number(value) : value;
      });
      return !error.textContent;
    }

    function show() {
      if (!read()) return;
      var shown = kind.work(state, data);
      Object.keys(shown.most || {}).forEach(function (name) {
        var field = fields.find(function (one) { return one.dataset.knob === name; });
        field.max = shown.most[name];
      });
      Object.keys(shown.marks).forEach(function (name) {
        var part = svg.querySelector('[data-mark="' + name + '"]'), to = shown.marks[name];
        Object.keys(to).forEach(function (key) {
          if (key === "text") part.textContent = to[key];
          else part.setAttribute(key, to[key]);
        });
      });
      fields.forEach(function (field) {
        var at = shown.texts[field.dataset.knob], place = field.parentNode.querySelector(".at");
        if (!place || typeof at !== "string") return;
        place.textContent = at;
        if (field.type === "range") field.setAttribute("aria-valuetext", at);
      });
      put(says, shown.says.map(function (name) { return filled(plan.says[name], shown, data); }).join(" "));
      svg.setAttribute("aria-label", says.textContent);
      Array.from(row.cells).forEach(function (cell, i) { put(cell, filled(plan.row[i], shown, data)); });
    }

    function turn(to) {
      fields.forEach(function (field) {
        var value = to[field.dataset.knob];
        if (value === undefined) return;
        if (field.type === "radio") field.checked = field.value === String(value);
        else field.value = Array.isArray(value) ? value.join(", ").replace(/-Infinity/g, "-inf") : value;
      });
      show();
    }

    /* A finger in the drawing turns the knobs that the explorable says. */
    function drag(event) {
      if (!event.buttons) return;
      var box = svg.getBoundingClientRect(), scale = svg.viewBox.baseVal.width / box.width;
      turn(kind.drag(state, (event.clientX - box.left) * scale, (event.clientY - box.top) * scale, data, event.type === "pointerdown"));
    }

    /* Previous, next and play beside a knob that goes in steps; its arrow keys do the same. */
    function steps(field) {
      var playing = 0, buttons = document.createElement("div"), play;
      function go(by) {
        field.value = kind.step ? kind.step(state, by, data) : Number(field.value) + by;
        show();
      }
      function stop() {
        clearInterval(playing);
        playing = 0;
        play.textContent = words.play;
      }
      play = button(words.play, function () {
        if (playing) return stop();
        if (field.value === field.max) go(field.min - field.max);
        play.textContent = words.pause;
        playing = setInterval(function () {
          go(1);
          if (field.value === field.max) stop();
        }, 1500);
      });
      function by(count) { return function () { if (playing) stop(); go(count); }; }
      buttons.className = "buttons";
      buttons.append(button(words.previous, by(-1)), button(words.next, by(1)), play);
      field.after(buttons);
      if (kind.step) field.addEventListener("keydown", function (event) {
        var to = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
        if (!to) return;
        event.preventDefault();
        by(to)();
      });
    }

    fields.filter(function (field) { return "steps" in field.dataset; }).forEach(steps);
    var buttons = document.createElement("div"), note = document.createElement("p");
    buttons.className = "buttons";
    buttons.append(button(words.keep, function () {
      row.parentNode.append(row.cloneNode(true));
      row.closest("details").open = true;
    }), button(words.reset, function () { form.reset(); show(); }));
    form.append(error);
    note.className = "how";
    note.textContent = words.computed;
    says.after(note, buttons);
    form.addEventListener("input", function (event) {
      show();
      if (kind.turn && !error.textContent) turn(kind.turn(event.target.dataset.knob, state, data));
    });
    form.addEventListener("submit", function (event) { event.preventDefault(); });
    if (kind.drag) {
      svg.classList.add("drag");
      svg.addEventListener("pointerdown", function (event) { svg.setPointerCapture(event.pointerId); drag(event); });
      svg.addEventListener("pointermove", drag);
    }
    form.hidden = false;
    show();
    figure.dataset.moves = "yes";
  }

  document.addEventListener("DOMContentLoaded", function () {
    document.querySelectorAll("[data-explorable]").forEach(start);
  });
})();
