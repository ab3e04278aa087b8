/* One popover for all that is marked: a word and what it means, a number and where it comes from, a sentence and what the
   build checks of it. By tap, by hover, and by keyboard, for which a section is one stop, however much is marked in it.
   Without it each mark keeps its title, and is a link to the ledger or to what a test is. What it says stands in words.js;
   the facts of numbers stand beside the page and come when a reader first moves on it, see render/value_facts.py. */
(function () {
  "use strict";
  var words = PercentOfPeak.words.popover;
  var content = document.querySelector(".md-content");
  var MARKS = "abbr[title], .value[title], .tested[title]", MARKED = "abbr, .value, .tested";
  var GAP = 6, EDGE = 8;   /* px between mark and popover, popover and edge of the screen */
  if (!content || !content.querySelector(MARKS)) return;

  /* ---- what is said ---- */

  var facts = null, list = document.getElementById("behind-the-values");
  var titles = new Map();
  function fetchFacts() {
    if (!list) return;
    var script = document.createElement("script");   /* a folder without a server knows no other way */
    script.src = list.dataset.file;
    document.head.append(script);
    list = null;
  }
  PercentOfPeak.behind = function (told) {
    facts = told;
    if (opened && opened.matches(".value")) {
      tell(opened);
      place();
    }
  };
  ["pointerover", "pointerdown", "focusin"].forEach(function (event) {
    content.addEventListener(event, fetchFacts, { once: true, passive: true });
  });

  /* What a mark says of itself without this script, the browser would say once more, over the popover. */
  function take() {
    content.querySelectorAll(MARKS).forEach(function (mark) {
      titles.set(mark, mark.title);
      mark.removeAttribute("title");
      if (mark.parentElement.closest("a, button, summary, .value")) return;   /* one thing to press is enough */
      mark.setAttribute("role", "button");
      mark.setAttribute("aria-haspopup", "dialog");
      mark.setAttribute("aria-expanded", "false");
    });
  }

  function make(tag, inside, css) {
    var element = document.createElement(tag);
    if (css) element.className = css;
    [].concat(inside).forEach(function (part) {
      if (part) element.append(part);
    });
    return element;
  }
  function link(address, text) {
    var element = make("a", text);
    element.href = address;
    return make("p", element, "to");
  }
  function line(parts) { return parts.filter(Boolean).join(" · "); }

  function ofWord(mark) {
    var kitchen = mark.dataset.kitchen, key = mark.dataset.term;
    return {
      label: words.ofWord(mark.textContent),
      parts: [
        make("p", titles.get(mark)),
        kitchen && make("p", words.kitchen(kitchen), "soft"),
        key && link(PercentOfPeak.progress.root + "glossary.html#term-" + key, words.toGlossary)
      ]
    };
  }

  /* How a number was found: "median of 12 · spread 0.9%". */
  function found(fact) {
    return line([fact.n && words.median(fact.n), fact.spread && words.spread(fact.spread)]);
  }
  function formula(fact) {
    if (!fact.name) return make("code", fact.is);
    return make("code", fact.is ? fact.name + " = " + fact.is : fact.name);
  }
  function names(fact) { return (fact.of || []).map(function (place) { return facts.names[place]; }); }

  function ofValue(mark) {
    var value = facts && facts.values[mark.dataset.of];
    if (!value) {   /* the size of a file; or the facts are on their way, and what they say will take this place */
      return {
        label: words.ofValue(mark.textContent),
        parts: [make("p", titles.get(mark)), mark.href && link(mark.href, words.toLedger)]
      };
    }
    var one = value.is ? value : facts.names[value.of[0]];
    var below = names(one), of = value.of.map(function (place) { return facts.names[place]; });
    var runs = [];   /* one for each card: on the page of several a value may rest on two */
    of.concat(below).forEach(function (fact) {
      var run = facts.runs[fact.run];
      if (run && !runs.some(function (other) { return other[0] === run[0]; })) runs.push(run);
    });
    return {
      label: words.ofValue(mark.textContent),
      parts: [
        make("p", formula(one), "formula"),
        one.what && make("p", one.what, "soft"),
        make("p", [make("b", one.value), make("span", found(one), "soft")], "is"),
        below.length && make("p", words.madeOf, "soft"),
        below.length && make("dl", below.map(function (part) {
          return make("div", [make("dt", formula(part)), make("dd", line([part.value, found(part)]))]);
        })),
        make("p", runs.length ? runs.map(function (run) { return words.measured(run[0], run[1]); }).join(". ") : words.how[of[0] && of[0].how] || words.workedOut, "soft"),
        mark.href && link(mark.href, words.toLedger)
      ]
    };
  }

  function ofClaim(mark) {
    var told = titles.get(mark).split("\n"), support = told.pop();   /* a line for each part of the condition */
    return {
      label: words.ofClaim,
      parts: [
        make("ul", told.map(function (part) { return make("li", part); })),
        make("p", support, "soft"),
        make("p", words.condition, "soft"),
        make("p", make("code", mark.closest(".claim").dataset.condition), "formula"),
        mark.href && link(mark.href, words.toHowItFails)
      ]
    };
  }

  function said(mark) {
    return mark.matches(".tested") ? ofClaim(mark) : mark.matches(".value") ? ofValue(mark) : ofWord(mark);
  }

  /* ---- the popover: the platform's, which lies above everything; in an older browser a box in the page ---- */

  var box = make("div", [], "md-typeset");
  box.id = "popover";
  box.setAttribute("role", "dialog");
  box.tabIndex = -1;   /* a tap on its words is no way out of it */
  if (box.showPopover) box.popover = "manual";
  else box.hidden = true;
  document.body.append(box);
  var opened = null, how = "", timer = 0;

  function open(mark, by) {
    clearTimeout(timer);
    if (opened === mark) {
      how = by;
      return;
    }
    close();
    opened = mark;
    how = by;
    tell(mark);
    if (mark.hasAttribute("role")) mark.setAttribute("aria-expanded", "true");
    mark.setAttribute("aria-describedby", box.id);
    if (box.showPopover) box.showPopover();
    else box.hidden = false;
    place();
  }

  function tell(mark) {
    var told = said(mark);
    box.setAttribute("aria-label", told.label);
    box.replaceChildren.apply(box, told.parts.filter(Boolean));
    if (how === "keyboard") box.append(make("p", words.keys, "keys"));
  }

  var returning = false;
  function close() {
    clearTimeout(timer);
    if (!opened) return;
    var mark = opened, inside = box.contains(document.activeElement);
    opened = null;
    if (box.hidePopover) box.hidePopover();
    else box.hidden = true;
    if (mark.hasAttribute("role")) mark.setAttribute("aria-expanded", "false");
    mark.removeAttribute("aria-describedby");
    if (inside) {
      returning = true;   /* to a mark that shall not open again */
      mark.focus({ preventScroll: true });
      returning = false;
    }
  }

  /* Below what was tapped, or above it where that has more room; never over it, never off the screen. */
  function place() {
    box.style.maxHeight = "";
    var rects = Array.from(opened.getClientRects()), all = opened.getBoundingClientRect();
    if (!rects.length) return close();
    var wide = document.documentElement.clientWidth, tall = window.innerHeight;
    var below = tall - all.bottom - GAP - EDGE, above = all.top - GAP - EDGE, height = box.offsetHeight;
    var isBelow = height <= below || below >= above;
    var room = Math.max(isBelow ? below : above, 0);
    if (height > room) {
      box.style.maxHeight = room + "px";
      height = room;
    }
    /* of a mark that is broken over two lines the part beside the popover says where it stands */
    var left = rects[isBelow ? rects.length - 1 : 0].left;
    box.style.left = Math.max(EDGE, Math.min(left, wide - box.offsetWidth - EDGE)) + window.scrollX + "px";
    box.style.top = (isBelow ? all.bottom + GAP : all.top - GAP - height) + window.scrollY + "px";
  }

  /* ---- one stop of the Tab key for each section and each fold; arrows go from there to all that is small ---- */

  /* Besides the marks: links to headings, to notes and in them, buttons that copy, folds of code and of a chart's data. */
  var SMALL = MARKED + ", .headerlink, .footnote-ref, .footnote a, .md-code__button, details:is(.data, .fold) > summary";
  var groups = new Map(), walked = [], stops = new Set();

  function isSeen(element) {
    return element.checkVisibility ? element.checkVisibility() : element.getClientRects().length > 0;
  }

  /* Anew with every Tab: other scripts put buttons into the page, and folds were opened and closed since. */
  function gather() {
    var folds = new Map();
    groups.clear();
    walked = [];
    content.querySelectorAll("h2, h3, " + SMALL).forEach(function (element) {
      if (element.matches("h2, h3")) folds = new Map();
      else if (!element.matches(MARKED) || element.hasAttribute("role")) {
        var at = element.matches("summary") ? element.parentElement.parentElement : element;
        var fold = at.closest("details, .tabbed-block, .footnote");
        if (!folds.has(fold)) folds.set(fold, []);
        folds.get(fold).push(element);
        groups.set(element, folds.get(fold));
        walked.push(element);
      }
    });
    new Set(groups.values()).forEach(settle);
  }

  /* A section's stop is where the reader was last; at first a mark, for what it opens says how to go on. */
  function settle(group) {
    var seen = group.filter(isSeen);
    stopAt(group, seen.find(function (one) { return stops.has(one); }) || seen.find(isWord) ||
      seen.find(function (one) { return !one.matches(".headerlink"); }));
  }
  function stopAt(group, stop) {
    group.forEach(function (one) {
      stops.delete(one);
      one.tabIndex = one === stop ? 0 : -1;
    });
    stops.add(stop);
  }
  function walk(element, step) {
    for (var i = walked.indexOf(element) + step; walked[i]; i += step) {
      if (isSeen(walked[i])) {
        walked[i].focus();
        return;
      }
    }
  }

  /* ---- tap, hover, keyboard ---- */

  function isWord(element) { return titles.has(element); }
  function marked(target) {
    var mark = target.closest && target.closest(MARKED);
    return mark && isWord(mark) ? mark : null;
  }
  function small(target) {
    var element = target.closest && target.closest("a, abbr, .value, button, summary");
    return element && groups.has(element) ? element : null;
  }

  function enter() {
    var first = box.querySelector("a");
    if (first) first.focus();
  }

  content.addEventListener("click", function (event) {
    var mark = marked(event.target);
    if (!mark || !groups.has(mark) || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
    event.preventDefault();
    if (!event.detail) {   /* no finger: a key, or a machine that reads aloud */
      open(mark, "keyboard");
      enter();
    } else if (opened === mark && how === "tap") close();
    else open(mark, "tap");
  });

  content.addEventListener("pointerover", function (event) {
    var mark = event.pointerType === "mouse" && marked(event.target);
    if (!mark) return;
    clearTimeout(timer);
    if (opened !== mark && (!opened || how === "hover")) timer = setTimeout(function () { open(mark, "hover"); }, 120);
  });
  function leave(event) {
    if (event.pointerType !== "mouse") return;
    clearTimeout(timer);
    if (opened && how === "hover") timer = setTimeout(close, 300);   /* enough to reach the popover */
  }
  content.addEventListener("pointerout", leave);
  box.addEventListener("pointerleave", leave);
  box.addEventListener("pointerenter", function () { clearTimeout(timer); });

  content.addEventListener("focusin", function (event) {
    var element = small(event.target);
    if (!element) return;
    stopAt(groups.get(element), element);
    if (isWord(element) && !returning && element.matches(":focus-visible")) open(element, "keyboard");
  });
  document.addEventListener("focusout", function (event) {
    var next = event.relatedTarget;
    if (opened && how !== "hover" && next !== opened && !box.contains(next) && document.hasFocus()) {
      if (event.target === opened || box.contains(event.target)) close();
    }
  });
  document.addEventListener("pointerdown", function (event) {
    if (opened && !box.contains(event.target) && !opened.contains(event.target)) close();
  });

  document.addEventListener("keydown", function (event) {
    if (event.key === "Escape" && opened) {
      close();
      return;
    }
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "Tab") gather();
    var element = small(event.target);
    if (element && !event.shiftKey && (event.key === "ArrowRight" || event.key === "ArrowLeft")) {
      walk(element, event.key === "ArrowRight" ? 1 : -1);
      event.preventDefault();
    } else if (element && isWord(element) && (event.key === " " || (event.key === "Enter" && !element.href))) {
      open(element, "keyboard");
      enter();
      event.preventDefault();
    } else if (event.key === "Tab" && opened && box.contains(event.target)) {
      /* The popover stands at the end of the page, and is read behind its mark: Tab goes on from there. */
      if (event.shiftKey) event.preventDefault();
      close();
    }
  });

  window.addEventListener("resize", function () { if (opened) place(); });
  window.addEventListener("hashchange", close);   /* its link was followed, on this page */
  window.addEventListener("pagehide", close);
  document.addEventListener("scroll", function (event) {
    if (opened && event.target !== document && !box.contains(event.target)) place();
  }, true);

  take();
  gather();
})();
