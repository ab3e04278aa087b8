/* Predictions: the choice is made, then the answer opens, and with it whatever shows it further down. What was called is
   kept by progress.js. Runs in the head: a page is covered before it is drawn. Without it the choices are a list, the
   answer is a fold as any other, and nothing is covered. */
(function () {
  "use strict";
  var course = window.PercentOfPeak, progress = course.progress, words = course.words.predict;
  var root = document.documentElement, here = progress.address(location.href);
  var AT_ONCE = 3; /* so many come back at the head of one page */
  var SHARE = 1 / 4, EVERY = 5; /* of a page's minutes, before its end counts; seconds between two looks at the clock */
  var FINDS = "onbeforematch" in HTMLElement.prototype; /* find-in-page looks into what is hidden, and opens it */
  var asked = {}, covers = [], isPrinting = false, isReady = false;
  root.classList.add("asks");

  function make(tag, css, text) {
    var element = document.createElement(tag);
    if (css) element.className = css;
    if (text) element.textContent = text;
    return element;
  }
  function button(text, act, css) {
    var element = make("button", css, text);
    element.type = "button";
    element.addEventListener("click", act);
    return element;
  }
  function plain(element) {
    var copy = element.cloneNode(true);
    copy.querySelectorAll(".headerlink").forEach(function (part) { part.remove(); });
    return copy.textContent.replace(/\s+/g, " ").trim();
  }
  function title() {
    var named = document.querySelector(".md-nav--primary a.md-nav__link--active") || document.querySelector(".md-content h1");
    return named ? plain(named) : document.title;
  }
  /* `{choice}` within a sentence is set in bold. */
  function say(place, sentence, choice) {
    var parts = sentence.split("{choice}");
    place.textContent = parts[0];
    if (parts.length > 1) place.append(make("strong", "", choice), parts[1]);
  }

  /* ---- a question with its choices: on its page, and where it comes back ---- */

  /* Marks what was called and what is right, not by colour alone, and takes no more. */
  function settle(radios, chosen, right) {
    radios.forEach(function (radio, number) {
      radio.disabled = true;
      radio.checked = number === chosen;
      var label = radio.closest("label");
      if (number === right) label.classList.add("right");
      else if (number === chosen) label.classList.add("missed");
      if (number === right || number === chosen) {
        label.append(" ", make("small", "", number !== right ? words.yours : number === chosen ? words.rightAndYours : words.right));
      }
    });
  }
  /* A button that takes the choice, once there is one. Enter on a choice does the same. */
  function caller(radios, place, take) {
    var call = button(words.call, function () {
      var chosen = radios.findIndex(function (radio) { return radio.checked; });
      if (chosen >= 0) take(chosen);
    }, "take");
    call.disabled = !radios.some(function (radio) { return radio.checked; });
    radios.forEach(function (radio) {
      radio.addEventListener("change", function () { call.disabled = false; });
      radio.addEventListener("keydown", function (event) {
        if (event.key === "Enter" && radio.checked) call.click();
      });
    });
    place.append(call);
  }
  /* The button is gone after the call: the reader stands at what is said then. */
  function stand(place) {
    place.tabIndex = -1;
    place.focus({ preventScroll: true });
  }

  /* ---- on its page ---- */

  function prediction(box) {
    var fold = box.querySelector(":scope > details.reveal"), place = box.querySelector(":scope > .call");
    var radios = Array.from(box.querySelectorAll(":scope > fieldset > .choices input"));
    var right = radios.findIndex(function (radio) { return radio.hasAttribute("data-right"); });
    var key = here + "#" + box.id, said = make("p", "said");
    var one = (asked[box.id] = { box: box, made: progress.prediction(key) });

    function keep(chosen, isRight) {
      one.made = {
        page: title(), question: plain(box.querySelector(".ask")), right: isRight, chosen: chosen, answer: right,
        choices: radios.map(function (radio) { return plain(radio.nextElementSibling); }), at: new Date().toISOString()
      };
      progress.predict(key, one.made);
    }
    function tell() {
      var made = one.made;
      if (radios.length) {
        settle(radios, made.chosen, right);
        place.textContent = "";
        place.append(said);
      } else {
        fold.append(said);
      }
      if (made.right === null) say(said, words.shown);
      else if (made.right) say(said, radios.length ? words.calledRight : words.saidRight);
      else if (right >= 0) say(said, words.calledWrong, plain(radios[right].nextElementSibling));
      else say(said, words.saidWrong); /* also where the call was made in another edition, and this card has no number */
      box.classList.toggle("was-right", made.right === true);
      uncover();
      tally();
    }
    one.wave = function () {
      if (one.made) return;
      keep(-1, null);
      if (radios.length) tell();
      else uncover(); /* its reader may still say who was right */
    };

    if (one.made && (radios.length || one.made.right !== null)) {
      tell();
      fold.open = one.made.right !== null;
    } else if (radios.length) {
      caller(radios, place, function (chosen) {
        if (right < 0) { /* no number is there yet that could tell, or a card gave one that nobody foresaw */
          settle(radios, chosen, -1);
          place.textContent = "";
          place.append(said);
          say(said, box.hasAttribute("data-waits") ? words.waits : words.seeBelow);
        } else {
          keep(chosen, chosen === right);
          tell();
        }
        fold.open = true;
        stand(said);
      });
    } else if (!box.hasAttribute("data-waits")) {
      var judge = make("p", "judge", words.wereYouRight + " ");
      [[words.iWas, true], [words.iWasNot, false]].forEach(function (answer) {
        judge.append(button(answer[0], function () {
          judge.remove();
          keep(-1, answer[1]);
          tell();
          stand(said);
        }), " ");
      });
      fold.append(judge);
    }
    fold.addEventListener("toggle", function () {
      if (fold.open && !isPrinting && (right >= 0 || !radios.length)) one.wave();
    });
  }

  /* ---- what answers it further down ---- */

  function isDone(name) {
    return !asked[name] || asked[name].made;
  }
  function cover(covered) {
    var one = { covered: covered, bar: covered.previousElementSibling, names: covered.dataset.answers.split(" ") };
    covers.push(one);
    if (one.names.every(isDone)) return open(one);
    covered.setAttribute("hidden", FINDS ? "until-found" : "");
    covered.addEventListener("beforematch", function () { wave(one); });
    var what = covered.querySelector("figure.chart") ? words.chart : covered.querySelector("table") ? words.table :
      covered.querySelector(".output") ? words.output : words.lines;
    var text = make("p", "", what + " "), back = make("a", "", words.toYourCall);
    back.href = "#" + one.names[0];
    text.append(back, words.orShow);
    one.bar.append(text, button(words.show, function () {
      wave(one);
      stand(covered);
    }));
  }
  function open(one) {
    one.bar.remove();
    one.covered.removeAttribute("hidden");
    one.covered.classList.add("open");
  }
  function uncover() {
    covers = covers.filter(function (one) {
      if (!one.names.every(isDone)) return true;
      open(one);
      return false;
    });
  }
  function wave(one) {
    one.names.forEach(function (name) { if (asked[name]) asked[name].wave(); });
    uncover();
  }
  /* A link into something covered opens it; a hit of the search, what stands in the section that it leads to. */
  function arrive(isFirst) {
    var place = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (!place) return;
    var inside = place.closest(".covered"), before = covers.length;
    var sought = (isFirst && new URLSearchParams(location.search).get("h") || "").toLowerCase().split(/\s+/).filter(Boolean);
    covers.slice().forEach(function (one) {
      var text = sought.length && follows(place, one.covered) ? one.covered.textContent.toLowerCase() : "";
      if (one.covered === inside || text && sought.some(function (word) { return text.includes(word); })) wave(one);
    });
    if (inside && covers.length < before) place.scrollIntoView();
  }
  function follows(heading, element) {
    var last = null;
    document.querySelectorAll(".md-content :is(h1, h2, h3, h4)[id]").forEach(function (each) {
      if (each.compareDocumentPosition(element) & Node.DOCUMENT_POSITION_FOLLOWING) last = each;
    });
    return last === heading;
  }

  /* ---- at the page's end: how many; at the next one's head: the missed ---- */

  /* What stands behind a page's last words. */
  function end() {
    return document.querySelector(".md-content__inner > :is(.footnote, .origin)");
  }
  function tally() {
    var all = Object.values(asked), line = document.querySelector(".md-content .tally");
    var made = all.filter(function (one) { return one.made && one.made.right !== null; });
    if (!isReady || !made.length) return;
    if (!line) {
      line = make("p", "tally");
      line.setAttribute("role", "status");
      if (end()) (document.querySelector(".md-content .counts") || end()).before(line);
      else document.querySelector(".md-content__inner").append(line);
    }
    var right = made.filter(function (one) { return one.made.right; }).length;
    line.textContent = words.tally(right, made.length, all.length) + (right < made.length ? " " + words.comesBack : "");
  }

  /* A page counts as read once its end was seen and a share of its minutes went by in sight, in one visit or in several;
     or once every prediction on it was called. */
  function reading(minutes) {
    var line = make("p", "counts"), sawTheEnd = false;
    line.setAttribute("role", "status");
    end().before(line);
    progress.open(here, title());
    function look() {
      var page = progress.page(here), all = Object.values(asked);
      if (!page) return; /* all was forgotten, in another tab */
      var called = all.length && all.every(function (one) { return one.made && one.made.right !== null; });
      if (!page.finished && (called || sawTheEnd && page.seconds >= 60 * minutes * SHARE)) return progress.finish(here);
      var text = page.finished ? words.isRead : words.counts(all.length);
      if (line.textContent !== text) line.textContent = text;
    }
    progress.changed(look);
    new IntersectionObserver(function (entries) {
      sawTheEnd = sawTheEnd || entries.some(function (entry) { return entry.isIntersecting; });
      look();
    }).observe(end());
    setInterval(function () {
      if (document.visibilityState === "visible" && !(progress.page(here) || {}).finished) progress.spend(here, EVERY);
    }, 1000 * EVERY);
    look();
  }

  function missed() {
    var all = progress.predictions();
    return Object.keys(all).filter(function (key) {
      var one = all[key], fits = one.right === false && Array.isArray(one.choices) && one.choices.length > 1 &&
        typeof one.choices[one.answer] === "string" && typeof one.question === "string";
      return fits && key.split("#")[0] !== here && (!one.returned || one.returned === here && typeof one.again !== "boolean");
    }).sort(function (a, b) { return all[a].at < all[b].at ? 1 : -1; }).slice(0, AT_ONCE);
  }
  function update(key, name, value) {
    var one = progress.prediction(key);
    one[name] = value;
    progress.predict(key, one);
  }
  /* Once, at the head of the next page that is read; it stays there until it is answered or put away. */
  function comeBack(line) {
    var keys = missed(), box = make("aside", "predict again");
    if (!keys.length) return;
    keys.forEach(function (key) { update(key, "returned", here); });
    box.setAttribute("aria-label", words.again);

    function ask(number, moved) {
      var key = keys[number], one = progress.prediction(key);
      var from = make("p", "from", words.missedOn + " "), link = make("a", "", one.page), set = make("fieldset");
      var list = make("ul"), choices = make("div", "choices"), place = make("div", "call");
      link.href = progress.root + key;
      from.append(link, ".");
      if (keys.length > 1) from.append(" " + words.ofMissed(number + 1, keys.length));
      set.append(make("legend", "ask", one.question));
      var radios = one.choices.map(function (text, index) {
        var item = make("li"), label = make("label"), radio = make("input");
        radio.type = "radio";
        radio.name = "again";
        radio.value = index;
        label.append(radio, make("span", "", text));
        item.append(label);
        list.append(item);
        return radio;
      });
      choices.append(list);
      set.append(choices);
      function next() {
        if (number + 1 < keys.length) ask(number + 1, true);
        else box.remove();
      }
      caller(radios, place, function (chosen) {
        var said = make("p", "said");
        update(key, "again", chosen === one.answer);
        settle(radios, chosen, one.answer);
        say(said, chosen === one.answer ? words.rightNow : words.wrongAgain, one.choices[one.answer]);
        place.textContent = "";
        place.append(said);
        if (number + 1 < keys.length) place.append(button(words.next, next));
        stand(said);
      });
      place.append(button(words.notNow, function () {
        update(key, "again", false);
        next();
      }, "quiet"));
      box.replaceChildren(from, set, place);
      if (moved) stand(from);
    }
    ask(0, false);
    line.after(box);
  }

  /* ---- labs that were done ---- */

  function lab(box) {
    var name = box.dataset.lab, label = make("label", "done"), tick = make("input"), kept = make("small", "", course.words.progress.lab_kept);
    tick.type = "checkbox";
    tick.checked = Boolean(progress.lab(name));
    tick.addEventListener("change", function () { progress.tick(name, tick.checked); });
    label.append(tick, make("span", "", course.words.progress.lab_done), kept);
    box.append(label);
  }

  /* ---- while the page comes in, and when it is there ---- */

  function isWhole(element) {
    if (document.readyState !== "loading") return true;
    for (var at = element; at; at = at.parentElement) if (at.nextSibling) return true;
    return false;
  }
  function look() {
    [[".md-content p.minutes", function (line) { if (line.previousElementSibling && line.previousElementSibling.matches("h1, .stamp")) comeBack(line); }],
      [".md-content .predict[id]", prediction], [".covered[data-answers]", cover], [".lab[data-lab]", lab]
    ].forEach(function (kind) {
      document.querySelectorAll(kind[0] + ":not([data-seen])").forEach(function (element) {
        if (!isWhole(element)) return;
        element.dataset.seen = "";
        kind[1](element);
      });
    });
  }
  var seen = new MutationObserver(look);
  seen.observe(root, { childList: true, subtree: true });
  document.addEventListener("DOMContentLoaded", function () {
    look();
    seen.disconnect();
    isReady = true;
    tally();
    arrive(true);
    var minutes = document.querySelector(".md-content p.minutes[data-minutes]");
    if (minutes && end()) reading(+minutes.dataset.minutes); /* any other is a page to look things up in */
  });
  window.addEventListener("hashchange", function () { arrive(false); });
  window.addEventListener("beforeprint", function () { isPrinting = true; });
  window.addEventListener("afterprint", function () { setTimeout(function () { isPrinting = false; }, 100); });
})();
