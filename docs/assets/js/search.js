/* Percent of Peak: the search. Its index is larger than a page, so it comes in parts, as scripts, since a page opened from
   a folder may fetch nothing: the students' pages when somebody opens the search, the others with the first question.
   What answers a question is search_engine.js. */
(function () {
  "use strict";
  var say = PercentOfPeak.words.search;
  var site = document.currentScript.src.replace(/assets\/js\/search\.js.*$/, "");
  var NEEDED = ["assets/vendor/minisearch/minisearch.js", "assets/vendor/stemmer/stemmer.js", "search/index.js",
    "assets/js/search_engine.js"];
  var button = document.querySelector(".search-open"), box = null, field, said, list;
  var state = "";   /* then "loading", "core" once students' pages answer, "rest" while the others come, "ready" or "failed" */

  function element(tag, className, text) {
    var made = document.createElement(tag);
    if (className) made.className = className;
    if (text) made.textContent = text;
    return made;
  }

  function failed() { state = "failed"; answer(); }
  function scripts(names, then) {
    var left = names.length;
    if (!left) then();
    names.forEach(function (name) {
      var script = element("script");
      script.src = site + name;
      script.async = false;   /* in this order */
      script.onload = function () { if (!--left) then(); };
      script.onerror = failed;
      document.head.appendChild(script);
    });
  }
  function parts(from, to, now) {
    scripts(PercentOfPeak.searchIndex.parts.slice(from, to), function () {
      if (PercentOfPeak.searchParts !== to) failed();
      PercentOfPeak.searchReady.then(function () {
        if (state === "failed") return;
        state = now;
        /* Who has gone on to a place that was found keeps the list as it is. */
        if (!list.contains(document.activeElement)) answer();
      }, failed);
    });
  }
  function load() {
    if (state) return;
    state = "loading";
    scripts(NEEDED, function () {
      if (PercentOfPeak.searchPart) parts(0, PercentOfPeak.searchIndex.core, "core");
      else failed();
    });
  }
  function loadRest() {
    state = "rest";
    var index = PercentOfPeak.searchIndex;
    parts(index.core, index.parts.length, "ready");
  }

  function build() {
    box = element("dialog", "search");
    box.setAttribute("aria-label", say.name);
    field = element("input");
    field.type = "search";
    field.placeholder = say.field;
    field.setAttribute("aria-label", say.field);
    field.autocomplete = field.autocapitalize = "off";
    field.spellcheck = false;
    var close = element("button", "", "×");
    close.type = "button";
    close.setAttribute("aria-label", say.close);
    close.addEventListener("click", function () { box.close(); });
    var edition = document.querySelector("meta[name='edition']"), ofAnother = edition && edition.dataset.folder && edition.dataset.searched;
    said = element("p");
    said.setAttribute("role", "status");
    list = element("ol");
    var head = element("div");
    head.append(field, close);
    box.append(head, said, list);
    if (ofAnother) said.after(element("p", "", say.ofCard(ofAnother)));
    document.body.append(box);
    field.addEventListener("input", answer);
    box.addEventListener("keydown", key);
    box.addEventListener("click", function (event) {
      /* Beside the box, or on a place of this page. */
      if (event.target === box || event.target.closest("a")) box.close();
    });
  }

  function open() {
    if (!box) build();
    if (!box.open) box.showModal();
    field.focus();
    field.select();
    load();
    answer();
  }

  function answer() {
    var question = field.value.trim(), found = [];
    if (question && state === "core") loadRest();
    var answers = state === "rest" || state === "ready";
    if (question && answers) found = PercentOfPeak.search(field.value);
    list.replaceChildren.apply(list, found.map(result));
    box.scrollTop = 0;
    said.textContent = !question ? say.hint : state === "failed" ? say.failed :
      found.length ? say.found(found.length) : state !== "ready" ? say.loading : say.nothing(question);
  }

  function result(one) {
    var link = element("a"), excerpt = element("span", "excerpt");
    link.href = PercentOfPeak.progress.root + one.url;   /* the words are the reference's, the page is of the edition that is open */
    one.excerpt.forEach(function (piece) { excerpt.append(piece.marked ? element("mark", "", piece.text) : piece.text); });
    link.append(element("b", "", one.title));
    var of = [one.page === one.title ? "" : one.page, one.rank === 1 ? say.forMentors : ""].filter(Boolean).join(" · ");
    if (of) link.append(element("small", "", of));
    link.append(excerpt);
    var item = element("li");
    item.append(link);
    return item;
  }

  /* Up and down go through what was found, Enter in the field opens the first, a letter goes on with the question. */
  function key(event) {
    event.stopPropagation();   /* the theme has keys of its own */
    var links = Array.from(list.querySelectorAll("a")), at = links.indexOf(document.activeElement);
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      var to = at + (event.key === "ArrowDown" ? 1 : -1);
      if (to >= links.length || (at < 0 && to < 0)) return;
      event.preventDefault();
      (links[to] || field).focus();
    } else if (event.key === "Escape") {
      event.preventDefault();   /* or it would empty the field first */
      box.close();
    } else if (event.key === "Enter" && at < 0 && event.target === field) {
      if (links[0]) links[0].click();
    } else if (at >= 0 && event.key.length === 1 && event.key !== " " && !event.ctrlKey && !event.metaKey && !event.altKey) {
      field.focus();
    }
  }

  button.addEventListener("click", open);
  window.addEventListener("keydown", function (event) {
    var typing = event.target.closest && event.target.closest("input, textarea, select, [contenteditable]");
    var slash = event.key === "/" && !typing && !event.ctrlKey && !event.metaKey && !event.altKey;
    if (!slash && !((event.ctrlKey || event.metaKey) && event.key === "k")) return;
    event.preventDefault();
    open();
  });
})();
