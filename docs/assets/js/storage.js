/* Where a browser lets no page keep anything (one inside another program, or with all cookies refused), asking for its
   storage throws, and the theme's script ends there: no buttons to copy with, no switch of colours. There it gets a
   storage that is empty and refuses what is written, which the theme and our own scripts bear. */
(function () {
  "use strict";
  function refuse() {
    throw new DOMException("this browser keeps nothing", "QuotaExceededError");
  }
  ["localStorage", "sessionStorage"].forEach(function (name) {
    try {
      window[name].getItem("");
    } catch (error) {
      var nothing = { length: 0, key: function () { return null; }, getItem: function () { return null; },
        setItem: refuse, removeItem: function () {}, clear: function () {} };
      Object.defineProperty(window, name, { configurable: true, value: nothing });
    }
  });
})();
