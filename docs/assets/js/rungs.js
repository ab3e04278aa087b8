/* Two rungs beside each other, any two: all are in the page, and two are seen. Without it these are the first two. */
(function () {
  "use strict";
  document.querySelectorAll(".rungs").forEach(function (box) {
    var form = box.querySelector(".pick"), selects = Array.from(form.querySelectorAll("select"));
    var seen = selects.map(function (select) { return select.value; });
    function show() {
      box.querySelectorAll(".side").forEach(function (side) {
        var at = seen.indexOf(side.dataset.rung);
        side.hidden = at < 0;
        side.style.order = at;
      });
      window.dispatchEvent(new Event("resize"));   // site.js looks again which boxes scroll sideways
    }
    selects.forEach(function (select, at) {
      select.addEventListener("change", function () {
        var other = 1 - at;
        if (select.value === seen[other]) selects[other].value = seen[other] = seen[at];   // they change places
        seen[at] = select.value;
        show();
      });
    });
    form.addEventListener("submit", function (event) { event.preventDefault(); });
    form.hidden = false;
    show();   // a browser that comes back to a page may keep what was chosen
  });
})();
