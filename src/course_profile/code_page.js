/* Marks what belongs together: a line of source and all that was made of it, and back. Without it all is still there. */
(function () {
  "use strict";
  function setUp(article) {
    var says = article.querySelector(".says"), start = says.textContent;
    var files = article.dataset.files.split("|"), shown = Number(article.dataset.shown);
    var telling = article.dataset.telling.split("|");
    var panes = Array.from(article.querySelectorAll(".pane"));
    var rows = new Map();   // a place, "file:line", to the rows of all panes that come from it
    var kept = null;        // the row that Enter, a click or a tap keeps marked
    article.querySelectorAll("[data-p]").forEach(function (row) {
      row.tabIndex = -1;
      row.dataset.p.split(" ").forEach(function (place) {
        if (!rows.has(place)) rows.set(place, new Set());
        rows.get(place).add(row);
      });
    });
    panes.forEach(function (pane) {
      pane.tabIndex = 0;
      pane.setAttribute("role", "region");
    });
    function inPane(row, name) { return Boolean(row.closest("." + name)); }
    function place(text) {
      var parts = text.split(":");
      return files[Number(parts[0])] + " line " + parts[1];
    }
    function sentence(row, places, marked) {
      var sass = marked.filter(function (one) { return inPane(one, "sass"); });
      var ptx = marked.filter(function (one) { return inPane(one, "ptx"); }).length;
      var kinds = new Map();
      sass.forEach(function (one) { kinds.set(one.dataset.n, (kinds.get(one.dataset.n) || 0) + 1); });
      function rank(kind) { return telling.includes(kind[0]) ? telling.indexOf(kind[0]) : 1000 - kind[1]; }
      var most = Array.from(kinds).sort(function (a, b) { return rank(a) - rank(b); }).slice(0, 5)
        .map(function (one) { return one[0] + " " + one[1]; }).join(", ");
      return place(places[0]) + places.slice(1).map(function (one) { return ", inlined at " + place(one); }).join("") +
        ": " + sass.length + " of SASS, " + ptx + " of PTX" + (most ? " (" + most + ")" : "") + ".";
    }
    function mark(row, scroll) {
      article.querySelectorAll(".on, .at").forEach(function (one) { one.classList.remove("on", "at"); });
      if (!row) {
        says.textContent = start;
        return;
      }
      var places = row.dataset.p.split(" ");
      /* The innermost place that is shown says what belongs together; the others are how one got there. */
      var inner = places.find(function (one) { return Number(one.split(":")[0]) < shown; }) || places[0];
      var marked = Array.from(rows.get(inner));
      marked.forEach(function (one) { one.classList.add("on"); });
      places.forEach(function (one) {
        rows.get(one).forEach(function (other) { if (inPane(other, "source")) other.classList.add("on"); });
      });
      row.classList.add("at");
      says.textContent = sentence(row, places, marked);
      if (!scroll) return;
      var both = article.querySelector(".panes");
      if (both.getBoundingClientRect().bottom > innerHeight) both.scrollIntoView({ block: "end" });
      panes.forEach(function (pane) {
        var first = pane.contains(row) ? row : pane.querySelector(".on");
        if (!first || !first.offsetParent) return;
        var box = pane.getBoundingClientRect(), here = first.getBoundingClientRect();
        if (here.top < box.top + 40 || here.bottom > box.bottom - 20) pane.scrollTop += here.top - box.top - box.height / 3;
      });
    }
    function rowOf(event) { return event.target.closest ? event.target.closest("[data-p]") : null; }
    function keep(row) {
      kept = kept === row ? null : row;
      mark(kept, true);
    }
    article.addEventListener("mouseover", function (event) {
      var row = rowOf(event);
      if (!kept && row) mark(row, false);
    });
    article.addEventListener("click", function (event) {
      var row = rowOf(event);
      if (row) keep(row);
    });
    article.addEventListener("change", function () { if (kept) mark(kept, true); });   // the other tab
    article.addEventListener("keydown", function (event) {
      var pane = event.target.closest(".pane");
      if (!pane || event.altKey || event.ctrlKey || event.metaKey) return;
      var all = Array.from(pane.querySelectorAll("[data-p]")), at = all.indexOf(event.target);
      var to = { ArrowDown: at + 1, ArrowUp: at < 0 ? -1 : at - 1, Home: 0, End: all.length - 1 }[event.key];
      if (event.key === "Escape") {
        kept = null;
        mark(null);
      } else if ((event.key === "Enter" || event.key === " ") && at >= 0) {
        event.preventDefault();
        keep(all[at]);
      } else if (to !== undefined && all.length) {
        event.preventDefault();
        var row = all[Math.max(0, Math.min(to, all.length - 1))];
        row.focus({ preventScroll: true });
        kept = null;
        mark(row, true);
      }
    });
  }
  var articles = Array.from(document.querySelectorAll("article")), choice = document.querySelector(".choice select");
  articles.forEach(setUp);
  function choose() { articles.forEach(function (article, at) { article.hidden = at !== choice.selectedIndex; }); }
  if (choice) {
    choice.addEventListener("change", choose);
    choose();
  }
})();
