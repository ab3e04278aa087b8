/* Fills in the clock times of a printed sheet, once a start is typed; ?start=18:05 does the same. */
(function () {
  "use strict";
  var input = document.getElementById("start-time");
  var cells = document.querySelectorAll("[data-minute]");

  function show(start) {
    var match = /^(\d{1,2}):(\d{2})$/.exec(start || "");
    cells.forEach(function (cell) {
      var minute = Number(cell.dataset.minute);
      if (!match) { cell.textContent = minute; return; }
      var total = (Number(match[1]) * 60 + Number(match[2]) + minute) % 1440;
      cell.textContent = String(Math.floor(total / 60)).padStart(2, "0") + ":" + String(total % 60).padStart(2, "0");
    });
  }

  input.addEventListener("input", function () { show(input.value); });
  document.getElementById("start").addEventListener("submit", function (event) {
    event.preventDefault();
    window.print();
  });
  var asked = new URLSearchParams(window.location.search).get("start");
  if (asked) { input.value = asked; show(asked); }
}());
