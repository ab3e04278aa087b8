/* The run view of a session: the mentor's watch in the room. What is said and drawn stands in the page already;
   this script tells the time. No network, no modules, nothing kept outside this browser. */
(function () {
  "use strict";
  const words = PercentOfPeak.words.run;
  const plan = JSON.parse(document.getElementById("session").textContent);
  const steps = plan.steps;
  const MINUTE = 60000, HOUR = 60 * MINUTE;
  const byId = (id) => document.getElementById(id);
  const root = document.documentElement;

  steps.reduce(function (start, step, i) {
    step.starts = start;
    step.row = byId("step-" + (i + 1));
    step.body = step.row.querySelector(".fields");
    return start + step.minutes;
  }, 0);
  const TOTAL = steps.reduce((sum, step) => sum + step.minutes, 0);

  /* ---- what is remembered: the planned start, and when each step really began ---- */

  /* at[i] is the moment step i began (null: it was jumped over); one more entry than steps, and the session is over. */
  let run = null;
  let keeps = true;

  const day = (moment) => {
    const date = new Date(moment);
    return [date.getFullYear(), date.getMonth() + 1, date.getDate()].map(two).join("-");
  };
  const keyOf = (moment) => "run:" + plan.id + ":" + day(moment);

  function keep() {
    try {
      window.localStorage.setItem(keyOf(run.start), JSON.stringify(run));
    } catch {
      keeps = false;
    }
  }

  function read(key) {
    try {
      const found = JSON.parse(window.localStorage.getItem(key));
      const sound = found && Number.isFinite(found.start) && Array.isArray(found.at) && found.at.length &&
        found.at.length <= steps.length + 1 && found.at.every((moment) => moment === null || Number.isFinite(moment));
      return sound ? { start: found.start, at: found.at } : null;
    } catch {
      return null;
    }
  }

  /* Today's run; or last evening's, when the session went past midnight. */
  function recall() {
    const now = Date.now();
    const yesterday = read(keyOf(now - 24 * HOUR));
    run = read(keyOf(now)) || (yesterday && now - yesterday.start < 12 * HOUR ? yesterday : null);
  }

  function forget() {
    try {
      window.localStorage.removeItem(keyOf(run.start));
    } catch {
      keeps = false;
    }
    run = null;
  }

  /* ---- the arithmetic of a run ---- */

  const index = () => run.at.length - 1;
  const isOver = () => index() >= steps.length;
  const planned = (i) => run.start + (i < steps.length ? steps[i].starts : TOTAL) * MINUTE;
  const began = (i) => run.at[i] ?? planned(i);

  /* Where the clock will be when the step ends, at the earliest: nobody ends a step in the past. */
  const willEnd = (i, now) => Math.max(now, began(i) + steps[i].minutes * MINUTE);

  /* Late is positive. Before the start, and in the last breath of a session, there is nothing to be late for. */
  function driftOf(now) {
    if (isOver()) return run.at[steps.length] - planned(steps.length);
    return now < run.start ? 0 : willEnd(index(), now) - planned(index() + 1);
  }

  /* A whole minute counts; a second less than one does not. */
  const wholeMinutes = (span) => Math.sign(span) * Math.floor((Math.abs(span) + 500) / MINUTE);

  const saved = (cuts) => cuts.reduce((sum, i) => sum + steps[i].saves, 0);

  /* The first cuts of the row that the map gives for this step, until they win back what is lost. */
  function cutsFor(late) {
    const cuts = [];
    for (const i of steps[index()].cuts) {
      if (saved(cuts) >= late) break;
      cuts.push(i);
    }
    return cuts;
  }

  /* ---- words ---- */

  function two(number) {
    return String(number).padStart(2, "0");
  }
  const clock = (moment) => { const date = new Date(moment); return two(date.getHours()) + ":" + two(date.getMinutes()); };

  /* 6:42, and 1:05:00 above an hour. */
  function watch(span) {
    const seconds = Math.ceil(Math.max(0, span) / 1000);
    const hours = Math.floor(seconds / 3600), minutes = Math.floor(seconds / 60) % 60;
    return (hours ? hours + ":" + two(minutes) : minutes) + ":" + two(seconds % 60);
  }

  function minutesWords(i) {
    const real = Math.round(minutesOf(i));
    return real === steps[i].minutes ? words.min(real) : words.minNot(real, steps[i].minutes);
  }

  function driftWords(late) {
    return late > 0 ? words.late(late) : late < 0 ? words.early(-late) : words.onTime;
  }

  /* "18:05", "1805", "18.05", "6:05 pm"; null for what is no time of day. */
  function timeOfDay(text) {
    const parts = /^\s*(\d{1,2})(?:\s*[:.h]?\s*(\d{2}))?\s*([ap])?\.?m?\.?\s*$/i.exec(text);
    if (!parts) return null;
    let hour = Number(parts[1]);
    const minute = Number(parts[2] || 0);
    if (parts[3]) {
      if (hour < 1 || hour > 12) return null;
      hour = hour % 12 + (parts[3].toLowerCase() === "p" ? 12 : 0);
    }
    return hour < 24 && minute < 60 ? { hour: hour, minute: minute } : null;
  }

  /* The moment nearest to now with that time of day: a session may begin before midnight and be set up after it. */
  function nearest(time, now) {
    const date = new Date(now);
    const moments = [-1, 0, 1].map((days) =>
      new Date(date.getFullYear(), date.getMonth(), date.getDate() + days, time.hour, time.minute).getTime());
    return moments.sort((a, b) => Math.abs(a - now) - Math.abs(b - now))[0];
  }

  /* ---- on the screen ---- */

  function put(id, text) {
    const place = typeof id === "string" ? byId(id) : id;
    if (place.textContent !== text) place.textContent = text;
  }
  const show = (id, shown) => { byId(id).hidden = !shown; };

  /* What changes only when a step does. */
  let drawn = null;
  function drawStep() {
    const state = !run ? "before" : isOver() ? "after" : "now";
    const i = state === "now" ? index() : null;
    const mark = state + i + (run ? run.start : "");
    if (drawn === mark) return;
    const fresh = drawn === null;
    drawn = mark;
    root.dataset.state = state;
    show("before", state === "before");
    show("now", state === "now");
    show("after", state === "after");
    show("bar", state !== "before");
    show("next", state !== "after");
    show("strip", state !== "before");
    show("projector-room", state === "now");
    steps.forEach(function (step, j) {
      step.row.classList.toggle("done", state === "after" || (state === "now" && j < i));
      step.row.classList.toggle("current", j === i);
      if (j === i) step.row.setAttribute("aria-current", "step");
      else step.row.removeAttribute("aria-current");
    });
    if (state === "now") drawCard(steps[i], i);
    if (state === "after") drawMinutes();
    if (!fresh) {
      root.scrollTop = 0;
      put("spoken", state === "now" ? words.step(i + 1, steps[i].title) : state === "after" ? words.isOver : "");
    }
  }

  function drawCard(step, i) {
    put("card-block", step.block);
    put("card-count", words.stepOf(i + 1, steps.length) + (step.kind === "break" ? "" : " · " + step.kind));
    put("card-title", step.title);
    byId("card").dataset.kind = step.kind;
    byId("card-fields").replaceChildren(step.body.cloneNode(true));
    const next = steps[i + 1];
    show("coming", Boolean(next));
    put("next-words", next ? words.next : words.end);
    if (next) {
      put("coming-title", next.title);
      put("coming-kind", (next.kind === "break" ? "" : next.kind + ", ") + words.minutes(next.minutes));
      byId("coming-fingers").replaceChildren(...copiesOf(next.body, ".fingers dd"));
    }
    byId("room-fingers").innerHTML = step.room;   /* our own HTML, made when the site was built */
    openBeside(byId("room-fingers"));
    put("room-title", step.kind === "break" ? words.pause : step.title);
    put("room-block", step.kind === "break" ? "" : step.block);
  }

  function copiesOf(body, selector) {
    const found = body.querySelector(selector);
    return found ? Array.from(found.childNodes, (node) => node.cloneNode(true)) : [];
  }

  /* What changes with the clock. */
  function drawTime() {
    const now = Date.now();
    const i = run && !isOver() ? index() : null;
    put("clock", run ? clock(now) : "");
    drawRows(now, i);
    if (i === null) drawQuietRoom(now);
    if (!run) {
      document.title = plan.title;
      return;
    }
    const late = wholeMinutes(driftOf(now));
    const drift = byId("drift");
    put(drift, now < run.start ? words.beforeTheStart : driftWords(late));
    drift.className = late > 0 ? "late" : "";
    if (late > 0) drift.href = "#cuts";   /* a link only while there is something to cut */
    else drift.removeAttribute("href");
    if (i === null) {
      document.title = words.over + " · " + plan.title;
      put("after-words", words.itWas(clock(run.start), clock(run.at[steps.length]), driftWords(late)));
      return;
    }
    const waiting = now < run.start;
    const end = began(i) + steps[i].minutes * MINUTE;
    const left = waiting ? run.start - now : end - now;
    const over = left <= -1000;
    put("left", over ? "+" + watch(-left) : watch(left));
    put("left-words", waiting ? words.until(clock(run.start)) : over ? words.overIts(steps[i].minutes)
      : words.leftOf(steps[i].minutes));
    byId("watch").className = over ? "status over" : "status";
    byId("watch-bar").style.setProperty("--done", waiting ? 0 : Math.min(1, (now - began(i)) / (end - began(i))));
    const shift = willEnd(i, now) - planned(i + 1);
    put("ends", waiting ? "" : words.to(clock(willEnd(i, now))) +
      (wholeMinutes(shift) ? " · " + words.plan(clock(planned(i + 1))) : ""));
    const sinceStart = now - run.start;
    show("begin-now", i === 0 && run.at[0] === run.start && sinceStart >= MINUTE);
    show("begin-early", waiting);
    document.title = (waiting ? words.startsIn(byId("left").textContent) : byId("left").textContent) + " · " + steps[i].title;
    drawCuts(late);
    if (i + 1 < steps.length) put("coming-when", waiting ? clock(planned(i + 1)) : clock(willEnd(i, now)));
    drawRoom(i, now, over, waiting);
  }

  function drawCuts(late) {
    const cuts = cutsFor(late), won = saved(cuts);
    show("cuts", late > 0);
    const mark = late + ":" + cuts.join();
    const list = byId("cut-list");
    if (list.dataset.mark === mark) return;
    list.dataset.mark = mark;
    put("cut-words", cuts.length ? words.cuts(won, late - won) : words.nothingToCut);
    list.replaceChildren(...cuts.map(function (i) {
      const item = document.createElement("li");
      const head = document.createElement("p");
      head.className = "cut-from";
      head.textContent = steps[i].title + " · " + words.saves(steps[i].saves, steps[i].saves === steps[i].minutes);
      item.append(head, ...copiesOf(steps[i].body, ".cut dd"));
      return item;
    }));
  }

  /* The list of all steps: minutes before the start, then planned times, and beside them those to expect. */
  function drawRows(now, current) {
    let expected;
    steps.forEach(function (step, i) {
      const [when, really] = step.row.querySelectorAll(".when, .really");
      const length = step.row.querySelector(".length");
      if (!run) {
        put(when, String(step.starts));
        put(really, "");
        put(length, words.min(step.minutes));
        return;
      }
      put(when, clock(planned(i)));
      const isDone = i < index();
      if (isDone || i === current) expected = began(i);
      const shift = wholeMinutes(expected - planned(i));
      put(really, shift && run.at[i] !== null ? clock(expected) : "");
      put(length, isDone ? minutesOf(i) === null ? words.skipped : minutesWords(i) : words.min(step.minutes));
      if (!isDone) expected = i === current ? willEnd(i, Math.max(now, run.start)) : expected + step.minutes * MINUTE;
      step.segment.style.setProperty("--done", isDone ? 1 : i === current
        ? Math.max(0, Math.min(1, (now - began(i)) / (step.minutes * MINUTE))) : 0);
    });
    document.querySelectorAll(".block > h3 .when").forEach(function (when) {
      const start = Number(when.dataset.start), end = Number(when.dataset.end);
      put(when, run ? clock(run.start + start * MINUTE) + "–" + clock(run.start + end * MINUTE) : start + "–" + end);
    });
    put("whole", run ? words.plannedToEnd(clock(planned(steps.length)),
      !isOver() && wholeMinutes(driftOf(now)) ? clock(planned(steps.length) + driftOf(now)) : "") : words.minutes(TOTAL));
    if (run) byId("strip").style.setProperty("--plan", Math.max(0, Math.min(1, (now - run.start) / (TOTAL * MINUTE))));
  }

  /* What the room may see. */
  function drawRoom(i, now, over, waiting) {
    const end = willEnd(i, now);
    put("room-left", over ? "0:00" : byId("left").textContent);
    put("room-left-words", waiting ? words.untilWeBegin : steps[i].kind !== "break" ? words.left
      : over ? words.weGoOn : words.backAt(clock(end)));
    const pause = steps.find((step, j) => j > i && step.kind === "break");
    const atTheEnd = planned(steps.length);
    put("room-break", pause ? words.breakAt(clock(end + (pause.starts - steps[i + 1].starts) * MINUTE))
      : words.weEndAt(clock(waiting ? atTheEnd : atTheEnd + end - planned(i + 1))));
    put("room-clock", clock(now));
  }

  function drawQuietRoom(now) {
    put("room-left", "");
    put("room-left-words", run ? words.allForToday : words.weBeginSoon);
    put("room-break", "");
    put("room-clock", run ? clock(now) : "");
  }

  function draw() {
    drawStep();
    drawTime();
  }

  /* ---- the strip: every step as long as it lasts ---- */

  steps.forEach(function (step) {
    step.segment = document.createElement("span");
    step.segment.style.flexGrow = step.minutes;
    if (step.kind === "break") step.segment.className = "break";
    if (step.first) step.segment.classList.add("first");
    byId("strip").append(step.segment);
  });

  /* ---- what the mentor does ---- */

  function begin(start) {
    run = { start: start, at: [start] };
    if (document.activeElement) document.activeElement.blur();   /* keys belong to the session now */
    changed();
    stayAwake();
  }
  function changed() {
    keep();
    draw();
    note();
  }
  function next() {
    if (!run || isOver()) return;
    const now = Date.now();
    if (now < run.start) run = { start: now, at: [now] };   /* before the start: begin, and nothing is ended */
    else run.at.push(now);
    changed();
  }
  function back() {
    if (!run || run.at.length < 2) return;
    do run.at.pop(); while (run.at.length > 1 && run.at[run.at.length - 1] === null);
    changed();
  }
  /* Here we are: after a phone died, or a step was left out. What lies between was not timed. */
  function jump(i) {
    if (!run || i === index()) return;
    if (Date.now() < run.start) run = { start: Date.now(), at: [null] };   /* before the start: it begins here */
    run.at.length = Math.min(run.at.length, i + 1);
    while (run.at.length <= i) run.at.push(run.at.length < i ? null : Date.now());
    if (run.at[i] === null) run.at[i] = Date.now();
    changed();
  }

  byId("start-form").addEventListener("submit", function (event) {
    event.preventDefault();
    const field = byId("start-time");
    const time = timeOfDay(field.value);
    show("start-wrong", !time);
    if (time) begin(nearest(time, Date.now()));
    else field.focus();
  });
  byId("start-now").addEventListener("click", () => begin(Date.now()));
  byId("next").addEventListener("click", next);
  byId("back").addEventListener("click", back);
  byId("begin-early").addEventListener("click", next);
  byId("begin-now").addEventListener("click", function () {
    run.at[0] = Date.now();
    changed();
  });
  document.querySelectorAll("button.jump").forEach(function (button) {
    button.addEventListener("click", () => jump(Number(button.dataset.step)));
  });

  byId("reset").addEventListener("click", () => byId("sure").showModal());
  byId("sure").addEventListener("close", function () {
    if (byId("sure").returnValue !== "forget" || !run) return;
    forget();
    letSleep();
    draw();
    note();
  });

  document.addEventListener("keydown", function (event) {
    if (event.ctrlKey || event.metaKey || event.altKey || byId("sure").open) return;
    const place = event.target;
    if (place.closest("input, textarea, select")) return;
    const onButton = place.closest("button, a, summary");
    const key = event.key.length === 1 ? event.key.toLowerCase() : event.key;
    if (key === "p") project(!root.classList.contains("projecting"));
    else if (key === "Escape" && root.classList.contains("projecting")) project(false);
    else if (key === "ArrowRight" || key === "n" || key === "PageDown" || (key === " " && !onButton)) next();
    else if (key === "ArrowLeft" || key === "b" || key === "PageUp") back();
    else return;
    event.preventDefault();
  });

  /* A swipe: one finger, sideways, not on something that scrolls sideways itself. */
  let touch = null;
  document.addEventListener("touchstart", function (event) {
    const one = event.touches.length === 1 && !event.target.closest("pre, input, textarea, dialog");
    touch = one ? { x: event.touches[0].clientX, y: event.touches[0].clientY } : null;
  }, { passive: true });
  document.addEventListener("touchend", function (event) {
    if (!touch || event.touches.length) return;
    const x = event.changedTouches[0].clientX - touch.x, y = event.changedTouches[0].clientY - touch.y;
    touch = null;
    if (Math.abs(x) < 70 || Math.abs(x) < 2.5 * Math.abs(y)) return;
    if (x < 0) next();
    else back();
  }, { passive: true });

  /* ---- the projector ---- */

  function project(on) {
    root.classList.toggle("projecting", on);
    show("desk", !on);
    show("projector", on);
    draw();
  }
  byId("to-projector").addEventListener("click", () => project(true));
  byId("from-projector").addEventListener("click", () => project(false));

  /* ---- the screen stays on ---- */

  let lock = null;
  let awake = "";
  async function stayAwake() {
    if (!run || isOver() || document.visibilityState !== "visible" || lock) return;
    try {
      lock = await navigator.wakeLock.request("screen");
      lock.addEventListener("release", () => { lock = null; });
      awake = "";
    } catch {
      awake = words.sleeps;
    }
    note();
  }
  function letSleep() {
    if (lock) lock.release();
    lock = null;
  }
  document.addEventListener("visibilitychange", function () {
    if (document.visibilityState !== "visible") return;
    draw();
    stayAwake();
  });

  /* ---- the minutes, handed in ---- */

  function minutesOf(i) {
    const from = run.at[i], to = run.at[i + 1];
    return from == null || to == null ? null : (to - from) / MINUTE;
  }
  const quoted = (text) => (/[",\n]/.test(text) ? '"' + text.replaceAll('"', '""') + '"' : text);

  function minutesAsText() {
    const lines = ["session,date,start,step,title,planned,actual"];
    steps.forEach(function (step, i) {
      const actual = minutesOf(i);
      lines.push([plan.id, day(run.start), clock(run.start), i + 1, quoted(step.title), step.minutes,
        actual === null ? "" : Number(actual.toFixed(1))].join(","));
    });
    return lines.join("\n") + "\n";
  }
  function drawMinutes() {
    byId("minutes-text").value = minutesAsText();
  }
  function download() {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([minutesAsText()], { type: "text/csv" }));
    link.download = day(run.start) + "-" + clock(run.start).replace(":", "") + "-" + plan.id + ".csv";
    document.body.append(link);
    link.click();
    link.remove();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
  }
  document.querySelectorAll("button.download").forEach((button) => button.addEventListener("click", download));
  byId("minutes-fold").addEventListener("toggle", () => { if (run) drawMinutes(); });
  byId("copy").addEventListener("click", async function () {
    drawMinutes();
    const text = byId("minutes-text");
    text.select();
    try {
      await navigator.clipboard.writeText(text.value);
      put("copied", words.copied);
    } catch {
      put("copied", words.selected);
    }
  });

  /* ---- the network may go ---- */

  let kept = "";
  if ("serviceWorker" in navigator && /^https?:$/.test(location.protocol)) {
    const controlled = Boolean(navigator.serviceWorker.controller);
    navigator.serviceWorker.register("service_worker.js").then(() => navigator.serviceWorker.ready).then(function () {
      kept = words.kept;
      root.dataset.kept = "yes";
      note();
    }).catch(() => { /* a browser that refuses is no reason to stop */ });
    navigator.serviceWorker.addEventListener("controllerchange", function () {
      if (!controlled) return;
      if (!run) location.reload();
      else {
        kept = words.newer;
        note();
      }
    });
  }

  function note() {
    put("note", [awake, keeps ? "" : words.keepsNothing, kept].filter(Boolean).join(" "));
  }

  /* Another window of this browser, on the projector, follows this one. */
  window.addEventListener("storage", function (event) {
    if (event.key && !event.key.startsWith("run:" + plan.id + ":")) return;
    recall();
    draw();
  });

  /* Links leave the watch running: they open beside it. The switch leads to the same watch, with another card's numbers. */
  function openBeside(part) {
    part.querySelectorAll("a[href]:not([href^='#'], .editions a)").forEach(function (link) {
      link.target = "_blank";
      link.rel = "noopener";
    });
  }
  openBeside(document);

  function tick() {
    drawTime();
    setTimeout(tick, 1000 - Date.now() % 1000);
  }
  recall();
  project(location.hash === "#projector");
  note();
  stayAwake();
  tick();
})();
