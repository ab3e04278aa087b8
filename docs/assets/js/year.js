/* The map of the year: the arrows of the week under the pointer are lifted, and the weeks at their other ends. */
(function () {
  "use strict";
  var map = document.querySelector(".year-map");
  if (!map) return;

  function weekOf(target) {
    var box = target.closest ? target.closest(".week") : null;
    return box ? box.dataset.week : "";
  }
  function lift(number) {
    map.classList.toggle("lifted", !!number);
    map.querySelectorAll(".near").forEach(function (element) { element.classList.remove("near"); });
    if (!number) return;
    var near = {};
    near[number] = true;
    map.querySelectorAll(".arrow.from" + number + ", .arrow.to" + number).forEach(function (arrow) {
      arrow.classList.add("near");
      var ends = arrow.getAttribute("class").match(/\d+/g);
      near[ends[0]] = near[ends[1]] = true;
    });
    map.querySelectorAll(".week").forEach(function (box) {
      box.classList.toggle("near", !!near[box.dataset.week]);
    });
  }
  map.addEventListener("pointerover", function (event) { lift(weekOf(event.target)); });
  map.addEventListener("pointerleave", function () { lift(""); });
  /* One to come has no page: its line in the list says what it will be. */
  map.addEventListener("click", function (event) {
    var box = event.target.closest(".week.to-come"), line = box && document.getElementById("week-" + box.dataset.week);
    if (line) line.scrollIntoView({ block: "center" });
  });
})();
