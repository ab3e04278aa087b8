/* The reader's switch between the cards whose numbers the site holds. Its links are plain; this adds the heading that is
   being read, keeps the choice on this device, and leads who comes from elsewhere on to the card that was chosen, where
   that one has the page. The choice goes along in the address (?card=h100), as a browser may keep a store for each file
   of a folder: who has just chosen is never led on, so nobody is led in a circle. In the head of a page, before it is
   drawn, and behind storage.js. */
(function () {
  "use strict";
  var said = document.querySelector("meta[name='edition']");
  if (!said) return;
  var root = document.currentScript.src.replace(/assets\/js\/edition\.js.*$/, "");
  var KEY = "percent-of-peak.card", here = said.content, pages = JSON.parse(said.dataset.pages);

  function keep(store, value) {
    try { store.setItem(KEY, value); } catch (error) { /* then it lasts as long as the address has it */ }
  }

  var chosen = /[?&]card=([\w-]+)/.exec(location.search);
  if (chosen) {
    keep(localStorage, chosen[1]);
    try { history.replaceState(null, "", location.pathname + location.hash); } catch (error) { /* it stays there */ }
  }
  var from = document.referrer, fromElsewhere = from ? from.indexOf(root) : !sessionStorage.getItem(KEY);
  keep(sessionStorage, here);
  var wanted = localStorage.getItem(KEY) || said.dataset.first, page = wanted !== here && pages[wanted];
  if (page && fromElsewhere && !chosen && performance.getEntriesByType("navigation")[0].type === "navigate") {
    location.replace(page + "?card=" + wanted + location.hash);
  }

  /* The last heading, or step of a session, above the middle of the window. */
  function heading() {
    var found = "";
    document.querySelectorAll(":is(h2, h3, h4, .step)[id]").forEach(function (at) {
      var box = at.getBoundingClientRect();
      if (box.height && box.top < innerHeight / 2) found = "#" + at.id;
    });
    return scrollY ? found : "";
  }
  ["pointerdown", "focusin", "click"].forEach(function (name) {
    document.addEventListener(name, function (event) {
      var link = event.target.closest && event.target.closest(".editions a"), card = link && link.dataset.edition;
      if (!link) return;
      link.href = link.href.replace(/[?#].*/, "") + "?card=" + card + heading();
      if (name === "click") keep(localStorage, card);
    });
  });
})();
