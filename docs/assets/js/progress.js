/* How far a reader has come: kept by this browser, on this device, and sent nowhere.

   PercentOfPeak.progress
     .isKept             false where the browser keeps nothing (a private window may forbid it): then it lasts as long
                         as the page is open
     .address(link)      what names a page: its address below the site's root, without query and #, "lectures/l3_memory.html";
                         whichever card's numbers it shows, it is the same page
     .root               address of the site, of this edition's part of it: the reference's stands at the site's root
     .page(address)      {title, opened, finished, seconds} of a page that was opened, or null; `finished` is "" until it
                         counts as read, see predict.js; `seconds` is how long it was in sight; dates are ISO 8601
     .pages()            the same for all of them, by address, a copy
     .prediction(key)    null, or what was called; `key` is "ADDRESS#ID". `right` is true, false, or null where the reader
                         asked to be shown the answer; `page` and `question` are texts, `choices` are texts, `chosen` and
                         `answer` the places of two of them (-1 for none), `at` a date; `returned` is the address of the
                         page where a missed one came back, `again` whether it was right there
     .predictions()      all of them, by key, a copy
     .lab(name)          the date on which a lab was ticked, or ""
     .counts()           {opened, finished, predicted, right, labs}; `predicted` leaves out what was only shown
     .open(address, title)  .spend(address, seconds)  .finish(address)  .predict(key, what)  .tick(name, isDone)   write it
                         down; what is spent is added to what was
     .export()           all of it as JSON, a text;  .save() hands it to the reader as a file
     .import(text)       adds what such a file knows; what is kept here stays. Throws an Error that can be shown
     .clear()            forgets everything
     .changed(callback)  calls back after every change, also one that another tab made

   In a folder (file://) Chromium keeps one store for all pages, Firefox one for every page: there home knows only
   itself. The file of .save() is plain JSON: {course, version, pages, predictions, labs}. */
(function () {
  "use strict";
  var course = (window.PercentOfPeak = window.PercentOfPeak || {});
  var root = document.currentScript.src.replace(/assets\/js\/progress\.js.*$/, "");
  var edition = document.querySelector("meta[name='edition']"), folder = edition && edition.dataset.folder ? edition.dataset.folder + "/" : "";
  var KEY = "percent-of-peak", VERSION = 1, PARTS = ["pages", "predictions", "labs"];
  var listeners = [], inMemory = null, isKept = true;

  try {
    localStorage.setItem(KEY + ".try", "1");
    localStorage.removeItem(KEY + ".try");
  } catch (error) {
    isKept = false;
  }

  function empty() {
    return { course: "Percent of Peak", version: VERSION, pages: {}, predictions: {}, labs: {} };
  }
  function isRecord(value) {
    return value !== null && typeof value === "object" && !Array.isArray(value);
  }
  function isText(value) {
    return typeof value === "string" && value.length < 2000;
  }
  var FITS = {
    pages: function (page) {
      return isRecord(page) && isText(page.title) && isText(page.opened) && isText(page.finished);
    },
    predictions: function (one) {
      return isRecord(one) && isText(one.page) && (one.right === null || typeof one.right === "boolean");
    },
    labs: isText
  };

  /* What a text of JSON knows of us; null where it is no such text. Entries that do not fit are left out. */
  function understood(text) {
    var found, all = empty();
    try {
      found = JSON.parse(text);
    } catch (error) {
      return null;
    }
    if (!isRecord(found) || found.course !== all.course || found.version !== VERSION) return null;
    PARTS.forEach(function (part) {
      Object.keys(isRecord(found[part]) ? found[part] : {}).forEach(function (key) {
        if (key !== "__proto__" && FITS[part](found[part][key])) all[part][key] = found[part][key];
      });
    });
    return all;
  }

  /* Read anew each time, for another tab may have written. */
  function read() {
    var text = null;
    if (isKept) {
      try {
        text = localStorage.getItem(KEY);
      } catch (error) {
        isKept = false;
      }
    }
    return (isKept ? text && understood(text) : inMemory) || empty();
  }
  function write(all) {
    inMemory = all;
    if (isKept) {
      try {
        localStorage.setItem(KEY, JSON.stringify(all));
      } catch (error) {
        isKept = false; /* full: what is known goes on in memory */
      }
    }
    listeners.forEach(function (callback) { callback(); });
  }
  function change(how) {
    var all = read();
    how(all);
    write(all);
  }
  function own(part, key) {
    return Object.prototype.hasOwnProperty.call(part, key) ? part[key] : null;
  }
  function now() {
    return new Date().toISOString();
  }
  window.addEventListener("storage", function (event) {
    if (event.key === KEY || event.key === null) listeners.forEach(function (callback) { callback(); });
  });

  course.progress = {
    root: root + folder,
    get isKept() { return isKept; },
    address: function (link) {
      var whole = new URL(link, document.baseURI).href.replace(/[?#].*$/, "");
      var name = whole.indexOf(root) === 0 ? whole.slice(root.length) : "";
      if (folder && name.indexOf(folder) === 0) name = name.slice(folder.length);   /* a page is the same on every card */
      return !name || name.slice(-1) === "/" ? name + "index.html" : name;
    },
    page: function (address) { return own(read().pages, address); },
    pages: function () { return read().pages; },
    prediction: function (key) { return own(read().predictions, key); },
    predictions: function () { return read().predictions; },
    lab: function (name) { return own(read().labs, name) || ""; },
    counts: function () {
      var all = read(), pages = Object.values(all.pages), made = Object.values(all.predictions);
      made = made.filter(function (one) { return one.right !== null; });
      return {
        opened: pages.length,
        finished: pages.filter(function (page) { return page.finished; }).length,
        predicted: made.length,
        right: made.filter(function (one) { return one.right; }).length,
        labs: Object.keys(all.labs).length
      };
    },
    open: function (address, title) {
      change(function (all) {
        var known = own(all.pages, address);
        all.pages[address] = {
          title: title, opened: known ? known.opened : now(), finished: known ? known.finished : "", seconds: known && +known.seconds || 0
        };
      });
    },
    spend: function (address, seconds) {
      if (!own(read().pages, address)) return;
      change(function (all) { all.pages[address].seconds = (+all.pages[address].seconds || 0) + seconds; });
    },
    finish: function (address) {
      var known = own(read().pages, address);
      if (!known || known.finished) return;
      change(function (all) { all.pages[address].finished = now(); });
    },
    predict: function (key, what) { change(function (all) { all.predictions[key] = what; }); },
    tick: function (name, isDone) {
      change(function (all) {
        if (isDone) all.labs[name] = now();
        else delete all.labs[name];
      });
    },
    export: function () { return JSON.stringify(read(), null, 2) + "\n"; },
    save: function () {
      var link = document.createElement("a");
      link.href = URL.createObjectURL(new Blob([this.export()], { type: "application/json" }));
      link.download = course.words.progress.file;
      link.click();
      setTimeout(function () { URL.revokeObjectURL(link.href); }, 10000);
    },
    import: function (text) {
      var found = understood(text);
      if (!found) throw new Error(course.words.progress.not_ours);
      change(function (all) {
        PARTS.forEach(function (part) {
          Object.keys(found[part]).forEach(function (key) {
            if (own(all[part], key) === null) all[part][key] = found[part][key];
          });
        });
        Object.keys(found.pages).forEach(function (key) {
          all.pages[key].finished = all.pages[key].finished || found.pages[key].finished;
        });
      });
    },
    clear: function () {
      inMemory = null;
      try {
        localStorage.removeItem(KEY);
      } catch (error) {
        isKept = false;
      }
      listeners.forEach(function (callback) { callback(); });
    },
    changed: function (callback) { listeners.push(callback); }
  };
})();
