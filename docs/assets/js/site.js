/* Percent of Peak: the few things a page needs that HTML and CSS cannot do. Without it every word is still there. */
(function () {
  "use strict";
  var here = document.currentScript.src.replace(/js\/site\.js.*$/, "");

  /* Mathematics: KaTeX, only where there is some. Without it the TeX source stands there. */
  function mathematics() {
    var places = document.querySelectorAll(".arithmatex");
    if (!places.length) return;
    var sheet = document.createElement("link");
    sheet.rel = "stylesheet";
    sheet.href = here + "vendor/katex/katex.min.css";
    document.head.appendChild(sheet);
    var script = document.createElement("script");
    script.src = here + "vendor/katex/katex.min.js";
    script.onload = function () {
      places.forEach(function (place) {
        var source = place.textContent.trim();
        var display = source.startsWith("\\[");
        window.katex.render(source.slice(2, -2), place, { displayMode: display, throwOnError: false });
        if (display) keyboard(place, "Formula");
      });
      document.documentElement.dataset.mathematics = "done";
    };
    document.head.appendChild(script);
  }

  /* A box that scrolls sideways must be reachable without a mouse. */
  function keyboard(box, name) {
    if (box.scrollWidth <= box.clientWidth + 1) return;
    if (box.tabIndex < 0) box.tabIndex = 0;
    if (!box.hasAttribute("role") && box.tagName !== "CODE") {
      box.setAttribute("role", "region");
      box.setAttribute("aria-label", name);
    }
  }
  function boxes() {
    document.querySelectorAll(".md-typeset__scrollwrap").forEach(function (box) { keyboard(box, "Table"); });
    document.querySelectorAll(".md-typeset pre > code").forEach(function (box) { keyboard(box, "Code"); });
    /* The theme makes each code block's buttons a landmark, and landmarks need names of their own. */
    document.querySelectorAll("nav.md-code__nav").forEach(function (nav, i) { nav.setAttribute("aria-label", "Code " + (i + 1)); });
  }

  /* A word's meaning on tap and by keyboard, not only under a mouse. */
  function words() {
    document.querySelectorAll(".md-typeset abbr[title]").forEach(function (word) { word.tabIndex = 0; });
  }

  /* A link into something folded unfolds it, and a link to a section's heading unfolds the section. */
  function unfold() {
    var place = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (!place || !place.closest(".md-content")) return;
    var folds = [], section = place.nextElementSibling;
    if (section && section.matches("details.beyond")) folds.push(section);
    for (var at = place.closest("details"); at; at = at.parentElement.closest("details")) folds.push(at);
    var opened = folds.filter(function (fold) { return !fold.open; });
    opened.forEach(function (fold) { fold.open = true; });
    if (opened.length) place.scrollIntoView();
  }
  window.addEventListener("hashchange", unfold);
  /* The same link once more changes no address. */
  document.addEventListener("click", function (event) {
    var link = event.target.closest && event.target.closest("a[href*='#']");
    if (link && link.href === location.href) setTimeout(unfold);
  });

  /* What a reader of the page would unfold is there on paper. */
  var closed = [];
  window.addEventListener("beforeprint", function () {
    closed = Array.from(document.querySelectorAll("details.beyond:not([open]), details.reveal:not([open])"));
    closed.forEach(function (fold) { fold.open = true; });
  });
  window.addEventListener("afterprint", function () {
    closed.forEach(function (fold) { fold.open = false; });
    closed = [];
  });

  /* Paper is white: print in the light colours whatever the reader has chosen. */
  var chosen = null;
  window.addEventListener("beforeprint", function () {
    chosen = document.body.getAttribute("data-md-color-scheme");
    document.body.setAttribute("data-md-color-scheme", "default");
  });
  window.addEventListener("afterprint", function () {
    if (chosen) document.body.setAttribute("data-md-color-scheme", chosen);
  });

  /* The table of contents says which sections are beyond the core. */
  function contents() {
    document.querySelectorAll(".md-typeset .beyond[id], .md-typeset details.beyond :is(h2, h3, h4)[id]").forEach(function (heading) {
      document.querySelectorAll('.md-nav--secondary a[href="#' + heading.id + '"]').forEach(function (link) {
        link.classList.add("beyond");
        link.title = "Beyond the core";
      });
    });
  }

  function start() {
    var search = document.querySelector(".md-search");
    if (search) search.setAttribute("aria-label", "Search");
    mathematics();
    words();
    contents();
    unfold();
    /* The theme wraps tables and adds buttons after the page is there: look again whenever it did. */
    var waiting = 0;
    function soon() { clearTimeout(waiting); waiting = setTimeout(boxes, 60); }
    var content = document.querySelector(".md-content");
    if (content) new MutationObserver(soon).observe(content, { childList: true, subtree: true });
    window.addEventListener("resize", soon);
    soon();
  }
  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", start);
  else start();
})();
