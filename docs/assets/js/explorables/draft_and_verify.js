/* A drafted word, verified. Twin of charts/explorables/draft_and_verify.py. */
(function () {
  "use strict";
  var WORDS = ["red", "hot", "old"], MOST = 1e6, NEARLY = 1e-9, X = 84, WIDE = 208, TOP = 36, PITCH = 56;

  function sum(numbers) { return numbers[0] + numbers[1] + numbers[2]; }
  function shares(numbers) {
    var total = sum(numbers);
    return numbers.every(function (x) { return x >= 0 && x <= MOST; }) && total > 0 ? numbers.map(function (x) { return x / total; }) : null;
  }
  function percent(share) { return PercentOfPeak.digits(100 * share, 1).replace(/\.0$/, ""); }
  function largest(numbers) { return numbers.indexOf(Math.max.apply(null, numbers)); }

  PercentOfPeak.explorables.draft_and_verify = {
    work: function (state) {
      var digits = PercentOfPeak.digits, at = PercentOfPeak.at, p = shares(state.target), q = shares(state.draft), fits = !!(p && q), k = state.k;
      if (!fits) p = q = [0, 0, 0];
      var missing = p.map(function (x, word) { return Math.max(x - q[word], 0); }), total = sum(missing), best = largest(p);
      var after = state.rule === "target" || total <= NEARLY ? p : missing.map(function (x) { return x / total; });
      var kept = q.map(function (x, word) {
        return state.rule === "keep" ? x : state.rule === "likeliest" ? (word === best ? x : 0) : Math.min(p[word], x);
      });
      var passing = sum(kept), refused = Math.max(1 - passing, 0), late = after.map(function (x) { return refused * x; });
      var out = kept.map(function (x, word) { return x + late[word]; });
      var misses = out.map(function (x, word) { return Math.abs(x - p[word]); }), worst = largest(misses), tokens = 1, power = 1, marks = {};
      for (var i = 0; i < k; i++) tokens += power *= passing;
      WORDS.forEach(function (_, word) {
        [["p", 0, 0, p], ["q", 1, 0, q], ["kept", 2, 0, kept], ["late", 2, kept[word], late]].forEach(function (bar) {
          var wide = at(WIDE * bar[3][word]), x = at(X + WIDE * bar[2]), y = at(TOP + PITCH * word + 14 * bar[1]);
          marks[bar[0] + word] = { d: fits && bar[3][word] > 0 ? "M" + x + " " + y + "h" + wide + "v10h" + at(-WIDE * bar[3][word]) + "z" : "" };
        });
        [["ps", p], ["qs", q], ["outs", out]].forEach(function (share) {
          marks[share[0] + word] = { text: fits ? percent(share[1][word]) : "" };
        });
      });
      return {
        says: fits ? [passing > 1 - NEARLY ? "always" : passing < NEARLY ? "never" : "passes", misses[worst] < NEARLY ? "exact" : "another"] : ["not_shares"],
        marks: marks, most: {},
        texts: {
          passing: percent(passing), refused: percent(refused), k: digits(k, 0), all: digits(k + 1, 0), tokens: digits(tokens, 2),
          word: WORDS[worst], comes: percent(out[worst]), wants: percent(p[worst]), miss: percent(misses[worst])
        }
      };
    }
  };
})();
