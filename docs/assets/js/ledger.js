/* The ledger: a filter for its rows, and old addresses that arrive. Without it every table is whole. */
(function () {
  "use strict";
  var table = document.querySelector("table.ledger"), box = document.querySelector(".filter");

  /* numbers.html#l3.chase.k128 was the place of every row; now the index knows the page by its first word. */
  function arrive() {
    var name = location.hash.slice(1), dot = name.indexOf(".");
    var line = dot > 0 && document.getElementById("of-" + name.slice(0, dot));
    if (line) location.replace(line.querySelector("a").href + location.hash);
  }
  if (!table) {
    arrive();
    window.addEventListener("hashchange", arrive);
    return;
  }

  var field = box.querySelector("input"), said = box.querySelector("output"), groups = null, waiting = 0;

  /* What a row says, read once: all but its command, which names the kernels it was timed beside. */
  function read() {
    groups = Array.from(table.tBodies, function (body) {
      return { body: body, rows: Array.from(body.rows, function (row) {
        var text = "";
        for (var i = 0; i < 6; i++) text += (i < 5 ? row.cells[i] : row.cells[i].firstElementChild).textContent + " ";
        return { row: row, text: text.toLowerCase() };
      }) };
    });
  }

  /* Rows that hold every word stay. Groups out of sight cost nothing: only their number of rows is set. */
  function filter() {
    if (!groups) read();
    var words = field.value.toLowerCase().split(/\s+/).filter(Boolean), all = 0, left = 0;
    groups.forEach(function (group) {
      var here = 0;
      group.rows.forEach(function (one) {
        var gone = !words.every(function (word) { return one.text.includes(word); });
        if (one.row.hidden !== gone) one.row.hidden = gone;
        if (!gone) here++;
      });
      group.body.hidden = !here;
      group.body.style.setProperty("--rows", here);
      all += group.rows.length;
      left += here;
    });
    var say = PercentOfPeak.words.ledger;
    said.textContent = words.length ? say.rowsOf(left, all) : say.rows(all);
    if (table.getBoundingClientRect().top < 0) box.scrollIntoView();
  }
  function soon() { clearTimeout(waiting); waiting = setTimeout(filter, 50); }

  /* Who follows a link to a row wants to see it, whatever the filter says. */
  function show() {
    var row = document.getElementById(location.hash.slice(1));
    if (!row || !row.hidden) return;
    field.value = "";
    filter();
    row.scrollIntoView();
  }

  box.hidden = false;
  field.addEventListener("focus", function () { if (!groups) read(); });
  field.addEventListener("input", soon);
  window.addEventListener("hashchange", show);
  window.addEventListener("pageshow", function () { if (field.value) filter(); });
})();
