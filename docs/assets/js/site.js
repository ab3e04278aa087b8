/* Percent of Peak: the few things a page needs that HTML and CSS cannot do. Without it every word is still there. */
(function () {
  "use strict";
  var words = PercentOfPeak.words.site;

  /* A box that scrolls sideways must be seen to do so, and be reachable without a mouse; one with a name is a landmark, no two alike. */
  function edges(box) {
    var rest = box.scrollWidth - box.clientWidth - box.scrollLeft;
    box.classList.toggle("goes-on", rest > 2);
    box.classList.toggle("came-from", box.scrollLeft > 2);
  }
  document.addEventListener("scroll", function (event) {
    if (event.target.matches && event.target.matches(".goes-on, .came-from")) edges(event.target);
  }, { capture: true, passive: true });
  function sideways(box, name) {
    edges(box);
    if (box.scrollWidth <= box.clientWidth + 1) return;
    if (box.tabIndex < 0) box.tabIndex = 0;
    if (name && !box.hasAttribute("role")) {
      box.setAttribute("role", "region");
      box.setAttribute("aria-label", name);
    }
  }
  function boxes() {
    document.querySelectorAll(".md-typeset__scrollwrap, .md-typeset .scroll").forEach(function (box, i) { sideways(box, words.table(i + 1)); });
    document.querySelectorAll(".md-typeset pre > code").forEach(function (box) { sideways(box); });
    document.querySelectorAll(".md-typeset .formula").forEach(function (box, i) { sideways(box, words.formula(i + 1)); });
    /* The theme makes each code block's buttons a landmark, and landmarks need names of their own. */
    document.querySelectorAll("nav.md-code__nav").forEach(function (nav, i) { nav.setAttribute("aria-label", words.buttonsOfCode(i + 1)); });
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

  /* The table of contents says which sections are beyond the core. */
  function contents() {
    document.querySelectorAll(".md-typeset .beyond[id], .md-typeset details.beyond :is(h2, h3, h4)[id]").forEach(function (heading) {
      document.querySelectorAll('.md-nav--secondary a[href="#' + heading.id + '"]').forEach(function (link) {
        link.classList.add("beyond");
        link.title = words.beyond;
      });
    });
  }

  /* A list of links that nobody reads to its end is one stop of the Tab key: arrows walk through it. */
  function oneStop(list) {
    var links = Array.from(list.querySelectorAll("a[href]"));
    if (links.length < 2) return;
    list.dataset.keys = words.keys;
    list.setAttribute("aria-description", words.walk);
    function stop(at) {
      links.forEach(function (link) { link.tabIndex = link === at ? 0 : -1; });
    }
    stop(links[0]);
    list.addEventListener("focusin", function (event) { if (links.includes(event.target)) stop(event.target); });
    list.addEventListener("keydown", function (event) {
      var at = links.indexOf(document.activeElement);
      var to = { ArrowDown: at + 1, ArrowRight: at + 1, ArrowUp: at - 1, ArrowLeft: at - 1, Home: 0, End: links.length - 1 }[event.key];
      if (at < 0 || to === undefined || event.altKey || event.ctrlKey || event.metaKey) return;
      event.preventDefault();
      event.stopPropagation();   // the popover's arrows walk among marks
      links[Math.max(0, Math.min(to, links.length - 1))].focus();
    });
  }

  /* Where the list of pages is a drawer, the theme opens it by a label, which no keyboard reaches: here it is a button. On the
     labels in the drawer that have the focus, the theme answers Enter; which of them can have it is in site.css. */
  function drawer() {
    var open = document.getElementById("__drawer"), pages = document.querySelector(".md-sidebar--primary");
    var label = document.querySelector(".md-header__button[for='__drawer']");
    if (!open || !pages || !label) return;
    var button = document.createElement("button");
    button.type = "button";
    button.className = label.className + " drawer-open";
    button.setAttribute("aria-label", words.pages);
    button.append(...label.childNodes);
    label.replaceWith(button);
    function said() {
      button.setAttribute("aria-expanded", open.checked);
      pages.querySelectorAll("label[for]").forEach(function (label) { label.tabIndex = open.checked ? 0 : -1; });
    }
    function enter() {
      var first = Array.from(pages.querySelectorAll("a[href], label[for]")).find(function (e) { return e.checkVisibility({ visibilityProperty: true }); });
      if (first) first.focus({ preventScroll: true });
    }
    said();
    open.addEventListener("change", said);
    button.addEventListener("click", function () {
      open.click();
      if (open.checked) enter();
    });
    pages.addEventListener("change", function () { if (open.checked) enter(); });   // another leaf is on top
    pages.addEventListener("keydown", function (event) {
      if (event.key !== " " || !event.target.matches("label[for]")) return;
      event.preventDefault();
      event.target.click();
    });
    document.addEventListener("keydown", function (event) {
      if (event.key !== "Escape" || !open.checked) return;
      open.click();
      button.focus();
    });
  }

  function start() {
    contents();
    unfold();
    drawer();
    document.querySelectorAll(".md-sidebar--secondary .md-nav--secondary, nav.road .halves").forEach(oneStop);
    /* The theme wraps tables and adds buttons after the page is there: look again whenever it did. */
    var waiting = 0;
    function soon() { clearTimeout(waiting); waiting = setTimeout(boxes, 60); }
    var content = document.querySelector(".md-content");
    if (content) new MutationObserver(soon).observe(content, { childList: true, subtree: true });
    window.addEventListener("resize", soon);
    document.addEventListener("toggle", soon, true);   // what was folded had no width
    soon();
  }
  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", start);
  else start();
})();
