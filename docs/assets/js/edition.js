/* The reader's switch between the cards whose numbers the site holds. Its links are plain; this adds the heading that is
   being read, keeps the choice on this device, and leads who comes from elsewhere on to the card that was chosen, where
   that one has the page. The choice goes along in the address (?card=h100), as a browser may keep a store for each file
   of a folder: who has just chosen is never led on, so nobody is led in a circle. In the head of a page, before it is drawn. */
(function () {
  "use strict";
  var said = document.querySelector("meta[name='edition']");
  if (!said) return;
  var root = document.currentScript.src.replace(/assets\/js\/edition\.js.*$/, "");
  var KEY = "percent-of-peak.card", here = said.content, pages = JSON.parse(said.dataset.pages);

  function kept(store) {
    try { return window[store].getItem(KEY); } catch (error) { return null; }
  }
  function keep(store, value) {
    try { window[store].setItem(KEY, value); } catch (error) { /* then it lasts as long as the address has it */ }
  }

  var chosen = /[?&]card=([\w-]+)/.exec(location.search);
  if (chosen) {
    keep("localStorage", chosen[1]);
    try { history.replaceState(history.state, "", location.pathname + location.hash); } catch (error) { /* it stays there */ }
  }
  var before = kept("sessionStorage"), from = document.referrer;
  keep("sessionStorage", here);
  var arrival = (window.performance && performance.getEntriesByType ? performance.getEntriesByType("navigation") : [])[0];
  var fromElsewhere = from ? from.indexOf(root) !== 0 : !before;
  var wanted = kept("localStorage") || said.dataset.first || here;
  if (!chosen && fromElsewhere && (!arrival || arrival.type === "navigate") && wanted !== here && pages[wanted]) {
    location.replace(pages[wanted] + "?card=" + wanted + location.hash);
  }

  /* The last heading, or step of a session, above the middle of the window. */
  function heading() {
    var found = "";
    document.querySelectorAll(":is(h2, h3, h4, .step)[id]").forEach(function (at) {
      var box = at.getBoundingClientRect();
      if (box.height && box.top < innerHeight / 2) found = at.id;
    });
    return scrollY > 0 && found ? "#" + found : "";
  }
  function complete(event) {
    var link = event.target.closest && event.target.closest("nav.editions a");
    if (!link) return;
    var plain = link.dataset.plain || (link.dataset.plain = link.getAttribute("href"));
    link.href = plain + "?card=" + link.dataset.edition + heading();
    if (event.type === "click") keep("localStorage", link.dataset.edition);
  }
  ["pointerdown", "focusin", "click"].forEach(function (name) { document.addEventListener(name, complete); });
})();
