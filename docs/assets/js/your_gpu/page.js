/* Your own GPU, the page: seven stations, each with a call before its button. The questions, bounds, units and the kernels'
   sources are the page's, in its first block; here they are run, told and kept on this device. */
(function () {
  "use strict";
  var course = PercentOfPeak, kit = course.yourGpu, arithmetic = kit.arithmetic, words = course.words.yourGpu;
  var root = document.querySelector(".gpu-begin");
  if (!root) return;
  var plan = JSON.parse(root.querySelector("script[type='application/json']").textContent), units = plan.units;
  var KEY = "percent-of-peak.gpu", ROUNDS = 9, ABOVE = 1.05;
  var SCALE = { left: 46, right: 344, top: 12, floor: 196, low: -4, high: 10 };
  var session = null, isBusy = false, changes = {}, state = read();

  /* ---- which kernels a station runs, and what answers its question ---- */

  function us(results, label) { return (results.filter(function (one) { return one.label === label; })[0] || {}).us; }
  function rate(results, label) {
    var one = results.filter(function (one) { return one.label === label; })[0] || {};
    return one.bytes / one.us;
  }
  function runs(problem, names) { return names.map(function (name) { return { kernel: problem + "/" + name, label: name }; }); }
  var stations = {
    roofs: {
      runs: [{ kernel: "copy/k01_vectorised", label: "copy" }, { kernel: "fused_multiply_add/k01_chains", label: "multiply-adds" }], isEach: true,
      value: function () { return state.roofs ? state.roofs.gflop_per_s / state.roofs.gb_per_s : NaN; }
    },
    strided_read: {
      runs: [{ kernel: "vector_add/k01_cuda", label: "vector add" }].concat([1, 2, 4, 8, 16, 32].map(function (stride) {
        return { kernel: "strided_read/k01_strided", label: "stride " + stride, dims: { S: stride } };
      })),
      value: function (results) { return us(results, "stride 32") / us(results, "stride 1"); }
    },
    transpose: {
      runs: runs("transpose", ["k01_naive", "k02_tiled", "k03_padded"]),
      value: function (results) { return us(results, "k01_naive") / us(results, "k02_tiled"); }
    },
    reduction: {
      runs: runs("reduction", ["k01_atomics", "k02_tree", "k03_shuffle"]), isEach: true,
      value: function (results) { return rate(results, "k02_tree") / rate(results, "k01_atomics"); }
    },
    sgemm: {
      runs: runs("sgemm", ["k01_naive", "k02_coalesced", "k03_shared_tiles", "k05_register_tile", "k06_vectorised"]),
      value: function (results) {
        var all = results.map(function (one) { return one.us; }).filter(Number.isFinite);
        return us(results, "k01_naive") / Math.min.apply(null, all);
      }
    },
    softmax: {
      runs: runs("softmax", ["k01_online"]),
      value: function (results) { return 1e2 * (results[0] || {}).bytes / (results[0] || {}).us / 1e3 / state.roofs.gb_per_s; }
    },
    attention: {
      runs: runs("attention", ["k01_materialised", "k02_teaching"]),
      value: function (results) { return us(results, "k01_materialised") / us(results, "k02_teaching"); }
    }
  };

  /* ---- kept on this device ---- */

  function empty() { return { about: null, at: "", roofs: null, results: {}, calls: {} }; }
  function read() {
    try {
      var kept = JSON.parse(localStorage.getItem(KEY));
      return kept && kept.results && kept.calls ? kept : empty();
    } catch (error) {
      return empty();
    }
  }
  function keep() {
    try {
      localStorage.setItem(KEY, JSON.stringify(state));
    } catch (error) { /* where nothing can be kept it lasts as long as the page is open */ }
  }

  /* ---- elements ---- */

  function make(tag, css, text) {
    var made = document.createElement(tag);
    if (css) made.className = css;
    if (text !== undefined) made.textContent = text;
    return made;
  }
  function button(text, press, css) {
    var made = make("button", css || "", text);
    made.type = "button";
    made.addEventListener("click", press);
    return made;
  }
  function digits(value) {
    return value >= 100 ? value.toFixed(0).replace(/\B(?=(\d{3})+$)/g, ",") : value.toPrecision(2 + (value >= 10));
  }
  function sizesOf(dims) {
    return Object.keys(dims).map(function (name) { return name + "\u00a0" + dims[name]; }).join(", ");
  }

  /* ---- one station: check, grow, check, time in rounds, check again ---- */

  function seed() { return crypto.getRandomValues(new Uint32Array(1))[0]; }
  function refusal(error) {
    if (error instanceof kit.Stopped) throw error;
    if (error instanceof arithmetic.Refused) return words.refused.time(error.message);
    if (!(error instanceof kit.Wrong)) throw error;
    if (session.lost) throw error;
    if (error.reason === "look") {
      var what = error.message.split(" ");
      return words.refused[what[0]](what[1], error.line);
    }
    return words.refused[error.reason](error.message, error.line);
  }
  function dimsOf(one, base) { return Object.assign({}, base, one.dims || {}); }

  /* Warm, and not counted: the batch grows until its own time says how long it must be, since a coarse clock shows nothing of one
     dispatch. Stamps that cannot be believed even here are not asked again. */
  async function warm(one) {
    var step = session.about.clock_step_us, us = Math.max(1e3 * one.once_ms, step), isByClock = false, tries = 0, all, next;
    one.plan = session.plan(us / 1e3, isByClock);
    for (; tries < 6; tries++) {
      all = one.plan.count * one.plan.again;
      try {
        us = await session.sample(one.made, one.dims, one.plan);
      } catch (error) {
        if (!(error instanceof arithmetic.Refused)) throw error;
        us = step / all;
        if (one.plan.by === "stamps") {
          isByClock = true;
          one.result.no_stamps = error.message;
          us = Math.max(1e3 * one.once_ms, step);
        }
      }
      next = session.plan(Math.max(us, step / all) / 1e3, isByClock);
      if (next.by === one.plan.by && next.count * next.again < 1.5 * all) return;
      one.plan = next;
    }
  }

  async function measure(list, isEach, tell) {
    var alive = [], i, r;
    /* Whatever throws for one of them is its own refusal, and the others go on. */
    async function each(work) {
      for (i = 0; i < alive.length; i++) {
        try {
          await work(alive[i]);
        } catch (error) {
          alive[i].result.refused = refusal(error);
        }
      }
      alive = alive.filter(function (one) { return !one.result.refused; });
    }
    var results = list.map(function (one) {
      var result = { kernel: one.kernel, label: one.label, isChanged: changes[one.kernel] !== undefined }, needs = kit.kernels[one.kernel].needs;
      if (needs && session.about.features.indexOf(needs) < 0) result.refused = words.lacking(needs);
      else alive.push({ kernel: one.kernel, label: one.label, dims: one.dims, result: result, samples: [] });
      return result;
    });
    var known = {};
    await each(async function (one) {
      tell(words.checking(one.label));
      var source = changes[one.kernel] === undefined ? plan.kernels[one.kernel] : changes[one.kernel], sizes, s;
      if (!known[one.kernel]) {
        one.made = await session.prepare(one.kernel, source);
        sizes = one.made.problem.check.filter(function (dims) { return !one.made.kernel.fits || one.made.kernel.fits(dims); });
        for (s = 0; s < sizes.length; s++) await session.check(one.made, sizes[s], seed());
        known[one.kernel] = one.made;
      } else one.made = known[one.kernel];
    });
    session.free();

    /* A size that all of them share, or one for each. */
    var groups = {};
    alive.forEach(function (one) {
      var key = isEach ? one.label : one.kernel.split("/")[0];
      (groups[key] = groups[key] || []).push(one);
    });
    for (var key in groups) {
      var group = groups[key], problem = group[0].made.problem, base = problem.first, ms, took;
      for (;;) {
        took = [];
        for (i = 0; i < group.length; i++) {
          tell(words.sizing(group[i].label + ", " + sizesOf(base)));
          try {
            ms = await session.once(group[i].made, dimsOf(group[i], base));
            took.push(ms);
            if (ms > arithmetic.LONGEST_MS && base === problem.first) group[i].result.refused = words.refused.large;
          } catch (error) {
            took.push(0);
            group[i].result.refused = refusal(error);
          }
        }
        session.free();
        took = took.filter(function (ms, place) { return !group[place].result.refused; });
        group = group.filter(function (one) { return !one.result.refused; });
        if (!group.length) break;
        /* One size too far: the one before stays. */
        if (base !== problem.first && Math.max.apply(null, took) > arithmetic.LONGEST_MS) break;
        took.forEach(function (ms, place) { Object.assign(group[place], { base: base, once_ms: ms }); });
        var next = problem.larger(base);
        if (!arithmetic.grows(Math.max.apply(null, took), problem.factor)) break;
        if (!group.every(function (one) { return session.holds(one.made, dimsOf(one, next)); })) break;
        base = next;
      }
    }
    alive = alive.filter(function (one) { return !one.result.refused; });

    await each(async function (one) {
      tell(words.checking(one.label + ", " + sizesOf(dimsOf(one, one.base))));
      one.dims = dimsOf(one, one.base);
      one.result.checked = await session.check(one.made, one.dims, seed());
      await warm(one);
    });
    var rounds = Number(root.dataset.rounds) || ROUNDS, order;
    for (r = 0; r < rounds && alive.length; r++) {
      tell(words.round(r + 1, rounds));
      order = arithmetic.shuffled(alive.length, arithmetic.draws(seed()));
      alive = order.map(function (place) { return alive[place]; });
      await each(async function (one) { one.samples.push(await session.sample(one.made, one.dims, one.plan)); });
    }
    tell(words.rechecking);
    await each(async function (one) { one.result.again = await session.check(one.made, one.dims, seed()); });
    session.free();
    alive.forEach(function (one) {
      var found = arithmetic.summary(one.samples, one.plan.step_us / one.plan.count / one.plan.again);
      Object.assign(one.result, {
        dims: one.dims, us: found.median, low_us: found.low, high_us: found.high, spread_us: found.spread, n: found.n, samples_us: one.samples,
        by: one.plan.by, step_us: one.plan.step_us, in_a_batch: one.plan.count * one.plan.again,
        bytes: one.made.problem.bytes(one.dims), flops: one.made.problem.flops(one.dims)
      });
    });
    return { results: results, rounds: rounds };
  }

  /* ---- the GPU ---- */

  var status = make("p", "status"), red = make("p", "wrong told"), about = make("p", "about"), panel = make("div", "panel");
  var looker = button(words.look, find), stopper = button(words.stop, function () { if (session) session.stop(); }, "quiet");
  status.setAttribute("role", "status");
  red.setAttribute("role", "alert");
  stopper.disabled = true;
  panel.append(looker, stopper);
  root.append(panel, status, red, about);

  function say(text) { status.textContent = text; }
  async function find() {
    if (session && !session.lost) return session;
    looker.disabled = true;
    var found = await kit.open(navigator.gpu, function () { return performance.now(); });
    looker.disabled = false;
    if (found.missing) {
      red.textContent = words.missing[found.missing];
      return null;
    }
    session = found;
    looker.hidden = true;
    say(words.found(found.about.name));
    red.textContent = found.about.isSoftware ? words.software : "";
    about.textContent = words.features(found.about.features, found.about.lanes);
    ready();
    return session;
  }

  function station(box) {
    var name = box.dataset.station, kind = stations[name], one = { box: box, name: name }, out = make("div", "out"), line = make("p", "said");
    var radios = Array.from(box.querySelectorAll("input[type='radio']")), call = make("div", "call"), table = make("div", "results");
    one.go = button(words.run, go, "take");
    line.setAttribute("role", "status");
    call.append(one.go, line);
    out.append(table);
    box.querySelector("details.after").before(call, out);
    box.append(editors(kind));
    one.ready = function () {
      var hasCall = state.calls[name] || radios.some(function (radio) { return radio.checked; }), hasRoofs = name === "roofs" || state.roofs;
      one.go.disabled = isBusy || !hasCall || !hasRoofs;
      if (!line.dataset.told) line.textContent = !hasRoofs ? words.needsRoofs : !hasCall ? words.needsCall : "";
    };
    radios.forEach(function (radio) { radio.addEventListener("change", one.ready); });
    one.told = function () {
      var made = state.calls[name], results = state.results[name];
      table.replaceChildren();
      if (!results) return;
      table.append(tableOf(results, box));
      one.go.textContent = words.again;
      var value = kind.value(results), bounds = box.dataset.bounds.split(" ").map(Number);
      var choices = radios.map(function (radio) { return radio.nextElementSibling.textContent; });
      if (!Number.isFinite(value)) line.textContent = words.cannotTell;
      else {
        var came = arithmetic.answer(value, bounds);
        line.textContent = words.came(choices[came], digits(value) + " " + box.dataset.unit) + " " +
          (made.chosen === came ? words.called : words.missed(choices[made.chosen]));
      }
      line.dataset.told = "yes";
      radios.forEach(function (radio, i) {
        radio.checked = i === made.chosen;
        radio.disabled = true;
      });
      box.querySelectorAll("details.after").forEach(function (fold) { fold.open = true; });
    };
    async function go() {
      if (isBusy) return;
      if (!state.calls[name]) state.calls[name] = { chosen: radios.findIndex(function (radio) { return radio.checked; }) };
      isBusy = true;
      ready();
      try {
        if (!await find()) return;
        session.stopped = false;
        stopper.disabled = false;
        var made = await measure(kind.runs, kind.isEach, say);
        if (name === "roofs") roofs(made.results);
        state.results[name] = made.results;
        state.about = session.about;
        state.at = new Date().toISOString();
        keep();
        one.told();
        draw();
        say(words.done(made.rounds));
      } catch (error) {
        if (session) session.free();
        if (error instanceof kit.Stopped) say(words.stopped);
        else if (session && session.lost) {
          red.textContent = words.lost;
          looker.hidden = false;
          session = null;
        } else red.textContent = words.broken(error.message);
      } finally {
        isBusy = false;
        stopper.disabled = true;
        ready();
      }
    }
    return one;
  }
  function roofs(results) {
    var copy = results[0], chains = results[1];
    if (!copy.us || !chains.us || copy.isChanged || chains.isChanged) return;
    state.roofs = { gb_per_s: arithmetic.gbPerS(copy.bytes, copy.us), gflop_per_s: arithmetic.gflopPerS(chains.flops, chains.us) };
  }
  function shareOf(one) { return state.roofs && one.us ? arithmetic.share(one, state.roofs) : NaN; }

  function tableOf(results, box) {
    var scroll = make("div", "scroll"), table = make("table"), head = make("tr"), body = make("tbody");
    scroll.tabIndex = 0;
    scroll.setAttribute("role", "region");
    scroll.setAttribute("aria-label", box.querySelector("legend").textContent);
    plan.heads.forEach(function (text) { head.append(make("th", "", text)); });
    results.forEach(function (one) {
      var row = make("tr"), first = make("td", "", one.label.replace(/^k\d\d_/, "").replace(/_/g, " ")), note;
      if (one.isChanged) first.append(" (" + words.changed + ")");
      row.append(first);
      if (one.refused) {
        note = make("td", "refused", one.refused);
        note.colSpan = plan.heads.length - 1;
        row.append(note);
      } else {
        var share = shareOf(one), isMoving = !one.flops || one.flops / one.bytes < 1;
        [sizesOf(one.dims), digits(one.us), digits(one.spread_us), String(one.n),
          digits(isMoving ? arithmetic.gbPerS(one.bytes, one.us) : arithmetic.gflopPerS(one.flops, one.us)) + " " + units[isMoving ? "gb" : "gflop"],
          Number.isFinite(share) ? (100 * share).toFixed(0) + (share > ABOVE ? " (" + words.above + ")" : "") : "–"
        ].forEach(function (text) { row.append(make("td", "", text)); });
      }
      body.append(row);
    });
    table.append(make("thead"), body);
    table.tHead.append(head);
    scroll.append(table);
    return scroll;
  }

  /* The kernels of a station, to read and to change; made when they are asked for. */
  function editors(kind) {
    var fold = make("details", "fold kernels"), isMade = false;
    fold.append(make("summary", "", words.readOrChange));
    fold.addEventListener("toggle", function () {
      if (isMade) return;
      isMade = true;
      fold.append(make("p", "", words.change));
      Array.from(new Set(kind.runs.map(function (one) { return one.kernel; }))).forEach(function (name) {
        var area = make("textarea"), label = make("label", "", words.sourceOf(name));
        area.value = plan.kernels[name];
        area.rows = 16;
        area.spellcheck = false;
        area.addEventListener("input", function () {
          if (area.value === plan.kernels[name]) delete changes[name];
          else changes[name] = area.value;
        });
        label.append(area);
        fold.append(label, button(words.asItWas, function () {
          area.value = plan.kernels[name];
          delete changes[name];
        }, "quiet"));
      });
    });
    return fold;
  }

  /* ---- the drawing, and what is saved ---- */

  var end = document.querySelector(".gpu-end"), figure = make("figure", "chart gpu-roofline");
  function drawing() {
    var points = [], roofs = state.roofs, s = SCALE;
    Object.keys(state.results).forEach(function (name) {
      state.results[name].forEach(function (one) { if (one.us && name !== "roofs") points.push(one); });
    });
    var most = roofs ? Math.log10(roofs.gflop_per_s) + 0.3 : 4, least = most - 4.3, at = function (value) { return String(Number(value.toFixed(1))); };
    function x(intensity) { return s.left + (Math.log2(Math.max(intensity, Math.pow(2, s.low))) - s.low) / (s.high - s.low) * (s.right - s.left); }
    function y(gflop) { return Math.min(s.floor, s.floor - (Math.log10(gflop) - least) / (most - least) * (s.floor - s.top)); }
    var parts = [], n, label = words.drawing(points.length);
    for (n = Math.ceil(least); n <= most; n++) {
      parts.push('<path class="grid" d="M' + s.left + " " + at(y(Math.pow(10, n))) + "H" + s.right + '"/><text x="' + (s.left - 4) + '" y="' +
        at(y(Math.pow(10, n)) + 4) + '" text-anchor="end">' + (n < 0 ? Math.pow(10, n).toFixed(-n) : Math.pow(10, n)) + "</text>");
    }
    for (n = s.low; n <= s.high; n += 2) {
      parts.push('<text x="' + at(x(Math.pow(2, n))) + '" y="' + (s.floor + 14) + '" text-anchor="middle">' + (n < 0 ? "1/" + Math.pow(2, -n) : Math.pow(2, n)) + "</text>");
    }
    parts.push('<path class="axis" d="M' + s.left + " " + s.top + "V" + s.floor + "H" + s.right + '"/>');
    parts.push('<text x="' + s.right + '" y="' + (s.floor + 29) + '" text-anchor="end">' + units.across + '</text><text x="' + s.left + '" y="9">' + units.gflop + "</text>");
    if (roofs) {
      var ridge = roofs.gflop_per_s / roofs.gb_per_s, first = Math.pow(2, s.low);
      parts.push('<path class="roof" d="M' + s.left + " " + at(y(first * roofs.gb_per_s)) + "L" + at(x(ridge)) + " " + at(y(roofs.gflop_per_s)) + "H" + s.right + '"/>');
      points.forEach(function (one) {
        var intensity = Math.max(one.flops / one.bytes, first), gflop = one.flops ? arithmetic.gflopPerS(one.flops, one.us) : first * arithmetic.gbPerS(one.bytes, one.us);
        parts.push('<circle class="point" r="3.2" cx="' + at(x(intensity)) + '" cy="' + at(y(gflop)) + '"><title>' + one.kernel + " " + one.label + "</title></circle>");
      });
    }
    return '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 352 232" role="img" aria-label="' + label + '">' + parts.join("") + "</svg>";
  }
  function draw() {
    figure.innerHTML = drawing();
    kept.textContent = state.at ? words.keptFrom(state.at.slice(0, 10)) : "";
    savers.forEach(function (one) { one.disabled = !state.at; });
  }
  function hand(text, type, name) {
    var link = make("a");
    link.href = URL.createObjectURL(new Blob([text], { type: type }));
    link.download = name;
    document.body.append(link);
    link.click();
    link.remove();
    setTimeout(function () { URL.revokeObjectURL(link.href); }, 1000);
  }
  kit.exported = function () {
    return JSON.stringify(Object.assign({
      course: "Percent of Peak", what: "measured in a browser, by its reader, with the kernels of this page; not published, and no record",
      version: 1, browser: navigator.userAgent
    }, state), null, 1);
  };
  var kept = make("p", "kept"), savers = [
    button(words.saveJSON, function () { hand(kit.exported(), "application/json", "my_gpu.json"); }),
    button(words.saveSVG, function () {
      var style = "<style>text{font:11.2px sans-serif;fill:#333}.grid{stroke:#ccc}.axis{stroke:#666;fill:none}.roof{stroke:#000;stroke-width:1.8;fill:none}.point{fill:#b5432a}</style>";
      hand(drawing().replace(/(<svg[^>]*>)/, "$1" + style), "image/svg+xml", "my_gpu.svg");
    }),
    button(words.forget, function () {
      localStorage.removeItem(KEY);
      location.reload();
    }, "quiet")
  ], saving = make("div", "panel");
  savers.forEach(function (one) { saving.append(one); });
  if (end) end.append(figure, kept, saving);

  var all = Array.from(document.querySelectorAll(".gpu-station")).map(station);
  function ready() { all.forEach(function (one) { one.ready(); }); }
  all.forEach(function (one) { one.told(); });
  ready();
  draw();
  kit.measure = measure; /* for the tests, with a session of their own */
  kit.use = function (found) { session = found; };
})();
