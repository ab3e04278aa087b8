/* A page on paper: in light colours, folded as its reader left it, its answers at the end where they were asked for. */
(function () {
  "use strict";
  var words = PercentOfPeak.words.paper;
  var bar, ofMentors, wanted, appendix, moved = [], scheme = null;

  /* What a reader unfolded is printed, and so is what the page itself shows unfolded. Asked before the theme unfolds
     everything for paper. What answers a student is not printed where it stands; a mentor needs it there. */
  function mark() {
    document.querySelectorAll(".md-content details").forEach(function (fold) {
      var shown = ofMentors ? fold.open || !fold.matches(".harness") : fold.open && !fold.matches(".answer, .reveal, .hint");
      fold.classList.toggle("on-paper", shown && !fold.matches(".data, .stamp *"));
    });
  }

  /* Questions that have an answer on this page; a lab is answered at the keyboard. */
  function questions() {
    return Array.from(document.querySelectorAll(".md-content :is(.predict:not(.again), .exercise)")).filter(function (box) {
      return answerOf(box) && box.querySelector(".ask") && !box.closest("details:not(.on-paper):not(.reveal):not(.answer)");
    });
  }
  function answerOf(box) { return box.querySelector(":scope > :is(details.reveal, details.answer)"); }

  /* Answers are moved and not copied: a drawing names its own parts, and each name may stand on a page once. */
  function gather() {
    questions().forEach(function (box, i) {
      var ask = box.querySelector(".ask");
      ask.dataset.asked = i + 1;
      if (!wanted.checked) return;
      var again = document.createElement("p");
      again.className = "ask";
      again.dataset.asked = i + 1;
      again.append.apply(again, ask.cloneNode(true).childNodes);
      appendix.append(again);
      var fold = answerOf(box);
      for (var part = fold.querySelector("summary").nextSibling; part; part = fold.querySelector("summary").nextSibling) {
        moved.push([part, fold]);
        appendix.append(part);
      }
    });
    appendix.hidden = !moved.length;
  }
  function putBack() {
    moved.forEach(function (pair) { pair[1].append(pair[0]); });
    moved = [];
    appendix.querySelectorAll(".ask").forEach(function (ask) { ask.remove(); });
    document.querySelectorAll("[data-asked]").forEach(function (ask) { delete ask.dataset.asked; });
    appendix.hidden = true;
  }

  window.addEventListener("beforeprint", function () {
    mark();
    if (bar && !ofMentors) gather();
    scheme = document.body.getAttribute("data-md-color-scheme");
    document.body.setAttribute("data-md-color-scheme", "default");
  }, true);
  window.addEventListener("afterprint", function () {
    if (bar && !ofMentors) putBack();
    if (scheme) document.body.setAttribute("data-md-color-scheme", scheme);
  });

  function start() {
    bar = document.querySelector(".paper-bar");
    ofMentors = bar && bar.dataset.readers === "mentors";
    mark();
    if (!bar) return;
    wanted = bar.querySelector("input");
    wanted.checked = /[?&]answers\b/.test(location.search);
    wanted.parentElement.hidden = ofMentors || !document.querySelector(".md-content :is(.predict, .exercise) > :is(details.reveal, details.answer)");
    bar.querySelector("button").addEventListener("click", function () { window.print(); });
    bar.hidden = false;
    appendix = document.createElement("section");
    appendix.className = "answers-on-paper";
    appendix.hidden = true;
    var heading = document.createElement("h2");
    heading.textContent = words.answers;
    appendix.append(heading);
    bar.before(appendix);
  }
  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", start);
  else start();
})();
