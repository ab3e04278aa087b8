/* The search itself: which sections answer a question, best first. No word of it touches the page, so a test can ask it.
   Loaded with the index, MiniSearch and the stemmer when somebody begins to search, before the parts; see search.js. */
(function () {
  "use strict";
  var index = PercentOfPeak.searchIndex, pages = index.pages, sections = [];
  var plain = new Set(index.plain);
  /* A student's page comes before a mentor's, and that before the evidence, unless it answers far less well. */
  var RANKS = [1, 0.1, 0.05];
  var SHOWN = 10, OF_A_PAGE = 2, EXCERPT = 150;

  /* "mma.sync" is one word and two, and so are "FlashAttention" and "block_size": all of them are found. */
  var WORD = /[\p{L}\p{N}_]+(?:[.+#]+[\p{L}\p{N}_]+|\+\+)*/gu;
  var split = new Map();
  function parts(word) {
    var found = split.get(word);
    if (!found) {
      found = word.replace(/(\p{Ll})(\p{Lu}\p{Ll})/gu, "$1 $2").split(/[^\p{L}\p{N}]+/u).filter(Boolean);
      if (found.length !== 1 || word.endsWith("+")) found.unshift(word.replace(/^_+|_+$/g, "") || word);
      split.set(word, found);
    }
    return found;
  }
  function whole(text) { return text.match(WORD) || []; }
  function words(text) { return whole(text).flatMap(parts); }

  var stems = new Map();
  function stem(word) {
    word = word.toLowerCase();
    if (!stems.has(word)) stems.set(word, /^[a-z]{4,}$/.test(word) ? stemmer(word) : word);
    return stems.get(word);
  }

  var known = new Set();
  var engine = new MiniSearch({
    fields: ["title", "page", "text", "code"],
    tokenize: words,
    processTerm: function (word) { word = stem(word); known.add(word); return word; },
    searchOptions: {
      boost: { title: 3, page: 1, text: 1, code: 0.3 },
      tokenize: function (term) { return [term]; },
      processTerm: function (term) { return term; },
      boostDocument: function (id) { return RANKS[pages[sections[id][0]][2]]; }
    }
  });
  /* A part of the index: behind those before it, and in small steps, so that what is typed meanwhile appears. */
  PercentOfPeak.searchReady = Promise.resolve();
  PercentOfPeak.searchParts = 0;   /* so many came */
  PercentOfPeak.searchPart = function (more) {
    PercentOfPeak.searchParts++;
    var first = sections.length;
    sections = sections.concat(more);
    var documents = more.map(function (section, i) {
      return { id: first + i, title: section[2], page: pages[section[0]][1], text: section[3], code: section[4] };
    });
    PercentOfPeak.searchReady = PercentOfPeak.searchReady.then(function () {
      return engine.addAllAsync(documents, { chunkSize: 40 });
    });
  };

  /* One word of a question: as it stands, in its parts, as it begins, or, where no page has it, as it was perhaps meant. */
  function term(word, last) {
    var pieces = parts(word), here = stem(pieces[0]), ways = [here];
    if (pieces.length > 1) ways.push({ combineWith: "AND", queries: pieces.slice(1).map(stem) });
    if (last) ways.push({ queries: [word.toLowerCase()], prefix: true, boost: { title: 1, page: 0.2, text: 0.2, code: 0.1 } });
    if (!known.has(here)) ways.push({ queries: [here], fuzzy: here.length < 4 ? 0 : here.length < 7 ? 1 : 2 });
    return { combineWith: "OR", queries: ways };
  }

  function stemmed(list) { return list.map(stem).join(" "); }
  function telling(list) {
    var left = list.filter(function (word) { return !plain.has(word.toLowerCase()); });
    return left.length ? left : list;
  }

  /* "what is out of memory" asks for "out of memory": words that say nothing go from the ends only. */
  function inner(list) {
    var said = list.map(function (word) { return !plain.has(word.toLowerCase()); });
    var first = said.indexOf(true), last = said.lastIndexOf(true);
    return first < 0 ? list : list.slice(first, last + 1);
  }

  /* The question, and the same with what the pages call the thing. */
  var means = Object.entries(index.means).map(function (entry) {
    return { said: whole(entry[0]), stands: entry[1].map(whole) };
  });
  function ways(question) {
    var asked = whole(question), found = [asked];
    means.forEach(function (one) {
      for (var at = 0; at + one.said.length <= asked.length; at++)
        if (stemmed(asked.slice(at, at + one.said.length)) === stemmed(one.said))
          one.stands.forEach(function (stands) {
            found.push(asked.slice(0, at).concat(stands, asked.slice(at + one.said.length)));
          });
    });
    return found;
  }

  /* Words that stand together in the question and in the answer weigh more, most of all in a heading. */
  function together(section, phrases) {
    var title = " " + stemmed(words(section[2])) + " ", text, best = 1;
    phrases.forEach(function (phrase) {
      var long = phrase.trim().split(" ").length;
      if (title === phrase) best = Math.max(best, 4);
      else if (title.includes(phrase)) best = Math.max(best, 2);
      else if (long > 1 && best < long) {
        text = text || " " + stemmed(words(section[3])) + " ";
        if (text.includes(phrase)) best = Math.max(best, [2, 6, 8][Math.min(long, 4) - 2]);
      }
    });
    return best;
  }

  /* The piece of the text with most of the words that were found, cut into what is marked and what is not. */
  function excerpt(text, terms) {
    var pieces = text.match(/[\p{L}\p{N}_]+(?:[.+#]+[\p{L}\p{N}_]+)*|[^\p{L}\p{N}_]+/gu) || [];
    var marks = pieces.map(function (piece) { return words(piece).some(function (word) { return terms.has(stem(word)); }); });
    var best = 0, most = -1;
    for (var from = 0; from < pieces.length; from++) {
      if (from && !/[.!?]\s/.test(pieces[from - 1])) continue;   /* it begins with a sentence */
      for (var i = from, length = 0, seen = new Set(); i < pieces.length && length < EXCERPT; length += pieces[i++].length)
        if (marks[i]) seen.add(stem(pieces[i]));
      if (seen.size > most) { most = seen.size; best = from; }
    }
    for (var cut = [], to = best, room = EXCERPT; to < pieces.length && room > 0; room -= pieces[to++].length) {
      var last = cut[cut.length - 1];
      if (last && last.marked === marks[to]) last.text += pieces[to];
      else cut.push({ text: pieces[to], marked: marks[to] });
    }
    if (to < pieces.length) cut.push({ text: " …", marked: false });
    return cut;
  }

  /* What a question finds: [{url, title, page, rank, excerpt}], best first. */
  PercentOfPeak.search = function (question) {
    var asked = ways(question);
    if (!asked[0].length) return [];
    var open = /[\p{L}\p{N}_+]$/u.test(question);   /* the last word may be typed still */
    function find(combineWith) {
      return engine.search({ combineWith: "OR", queries: asked.map(telling).map(function (way) {
        return { combineWith: combineWith, queries: way.map(function (word, i) { return term(word, open && i === way.length - 1); }) };
      }) });
    }
    var found = find("AND");
    if (!found.length) found = find("OR");
    var phrases = asked.map(function (way) { return " " + stemmed(inner(way)) + " "; });
    found = found.slice(0, 80);
    found.forEach(function (one) { one.score *= together(sections[one.id], phrases); });
    found.sort(function (a, b) { return b.score - a.score; });
    var times = {};
    return found.filter(function (one) {
      var page = sections[one.id][0];
      times[page] = (times[page] || 0) + 1;
      return times[page] <= OF_A_PAGE;
    }).slice(0, SHOWN).map(function (one) {
      var section = sections[one.id], page = pages[section[0]];
      return { url: page[0] + (section[1] ? "#" + section[1] : ""), title: section[2] || page[1], page: page[1], rank: page[2],
        score: one.score, excerpt: excerpt(section[3], new Set(one.terms)) };
    });
  };
})();
