/* Home, and the front page of the year: where you are on the road. Without script, or with nothing kept, the road is the same for everybody. */
(function () {
  "use strict";
  var course = window.PercentOfPeak, words = course.words.home, progress = course.progress;
  var stops = document.querySelector(".stops");
  if (!stops) return;

  function add(parent, tag, className, text) {
    var element = document.createElement(tag);
    element.className = className;
    if (text) element.textContent = text;
    parent.appendChild(element);
    return element;
  }

  /* What is known of one stop of the list: its page, the predictions on it, its labs. */
  function of(stop, made) {
    var address = progress.address(stop.dataset.page), page = progress.page(address);
    var labs = stop.dataset.labs.split(" ").filter(Boolean);
    return {
      link: stop.querySelector("a"),
      state: page ? (page.finished ? "read" : "begun") : "",
      made: Object.keys(made).filter(function (key) { return key.indexOf(address + "#") === 0; }).length,
      asked: +stop.dataset.predictions,
      done: labs.filter(function (name) { return progress.lab(name); }).length,
      labs: labs.length
    };
  }
  function inWords(known) {
    var parts = known.state ? [words[known.state]] : [];
    if (known.made && known.asked) parts.push(words.predictions(Math.min(known.made, known.asked), known.asked));
    if (known.done) parts.push(known.labs === 1 ? words.lab : words.labs(known.done, known.labs));
    return parts.join(" · ");
  }

  var box = document.createElement("section");
  box.className = "where";
  box.setAttribute("aria-label", words.label);
  var line = add(box, "p", "known"), buttons = add(box, "p", "choices"), said = add(box, "output", "said");
  function button(text, action) {
    var made = add(buttons, "button", "", text);
    made.type = "button";
    made.addEventListener("click", action);
    return made;
  }
  var save = button(words.save, function () { progress.save(); });
  var file = document.createElement("input");
  file.type = "file";
  file.accept = ".json,application/json";
  file.hidden = true;
  box.appendChild(file);
  button(words.load, function () { file.click(); });
  file.addEventListener("change", function () {
    var chosen = file.files[0];
    if (!chosen) return;
    var reader = new FileReader();
    reader.onload = function () {
      try {
        progress.import(String(reader.result));
        said.textContent = words.loaded;
      } catch (error) {
        said.textContent = error.message;
      }
      file.value = "";
    };
    reader.readAsText(chosen);
  });
  var forget = button(words.forget, function () {
    if (!window.confirm(words.sure)) return;
    progress.clear();
    said.textContent = "";
  });
  stops.parentNode.insertBefore(box, stops);

  var begin = document.querySelector(".hero .md-button--primary");
  var first = begin && { words: begin.textContent, href: begin.getAttribute("href") };

  function draw() {
    var made = progress.predictions(), read = 0, next = null, any = false;
    var list = Array.from(stops.querySelectorAll("[data-page]"));
    list.forEach(function (stop) {
      var known = of(stop, made), text = inWords(known), place = stop.querySelector(".known");
      stop.classList.toggle("read", known.state === "read");
      stop.classList.toggle("begun", known.state === "begun");
      if (text && !place) {
        place = document.createElement("span");
        place.className = "known";
        stop.insertBefore(place, stop.querySelector("p"));
      }
      if (place && text) place.textContent = text;
      else if (place) place.remove();
      document.querySelectorAll(".whole-road a, .year-map a").forEach(function (dot) {
        if (dot.dataset.page === stop.dataset.page) dot.classList.toggle("read", known.state === "read");
      });
      any = any || !!text;
      if (known.state === "read") read += 1;
      else if (!next) next = known.link;
    });
    list.forEach(function (stop) { stop.classList.toggle("next", any && !!next && stop.contains(next)); });
    var counts = progress.counts();
    line.textContent = any
      ? [words.pages(read, list.length), counts.predicted ? words.right(counts.right, counts.predicted) : "",
        progress.isKept ? words.kept : words.notKept].filter(Boolean).join(" · ")
      : words.none;
    save.hidden = forget.hidden = !any;
    if (begin) {
      begin.textContent = any && next ? words.goOn(next.textContent) : first.words;
      begin.setAttribute("href", any && next ? next.getAttribute("href") : first.href);
    }
  }
  progress.changed(draw);
  draw();
})();
