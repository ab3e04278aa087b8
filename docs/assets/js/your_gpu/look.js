/* Your own GPU, a look at the source: races that a run need not show. `kit.look(source)` gives a list of {line, what}.

   What is seen: a workgroup's memory that is written and then read (or the other way round) at another index with no barrier
   between, also from one turn of a loop to the next; and memory that all threads write at one place, without an atomic. What is
   not: pointers, helper functions that touch the workgroup's memory, two writes at places that are each a thread's own. Two accesses of one text whose index is a thread's own
   are of one thread; under `if (t < half)` the places t and t + half are apart; under `if (t == 0)` the place 0 is that of t. */
(function () {
  "use strict";
  var OWN = /@builtin\(\s*(?:local_invocation_id|local_invocation_index|global_invocation_id|subgroup_invocation_id)\s*\)\s*(\w+)/g;
  var BARRIER = /\b(?:workgroupBarrier|workgroupUniformLoad)\s*\(/;

  function plain(source) {
    return source.replace(/\/\*[\s\S]*?\*\/|\/\/[^\n]*/g, function (text) { return text.replace(/[^\n]/g, " "); });
  }
  function squeezed(text) { return text.replace(/\s+/g, ""); }
  /* The place behind the bracket that closes the one at `at`. */
  function closed(text, at) {
    var pairs = { "(": ")", "[": "]", "{": "}" }, deep = [], i;
    for (i = at; i < text.length; i++) {
      if (pairs[text[i]]) deep.push(pairs[text[i]]);
      else if (text[i] === deep[deep.length - 1] && (deep.pop(), !deep.length)) return i + 1;
    }
    return text.length;
  }
  function words(text) { return text.match(/[A-Za-z_]\w*/g) || []; }

  /* ---- statements: {kind: do | if | loop, text, at, parts} ---- */

  function statements(text, from, to) {
    var found = [], at = from, head, end, one;
    function block() {
      while (at < to && text[at] !== "{") at += 1;
      end = closed(text, at);
      var inside = statements(text, at + 1, end - 1);
      at = end;
      return inside;
    }
    while (at < to) {
      if (/[\s;]/.test(text[at])) { at += 1; continue; }
      head = /^(for|while|if|loop|continuing|switch)\b/.exec(text.slice(at, at + 12));
      if (head || text[at] === "{") {
        one = { kind: !head || head[1] === "continuing" ? "block" : head[1] === "if" ? "if" : "loop", text: "", at: at, parts: [] };
        if (head) at += head[1].length;
        while (/\s/.test(text[at])) at += 1;
        if (text[at] !== "{") {
          end = text[at] === "(" ? closed(text, at) : text.indexOf("{", at);
          one.text = text.slice(at, end).replace(/^\(([\s\S]*)\)$/, "$1");
          at = end;
        }
        one.parts.push(block());
        while (one.kind === "if" && /^\s*else\b/.test(text.slice(at, at + 40))) {
          at += text.slice(at).indexOf("else") + 4;
          if (/^\s*if\b/.test(text.slice(at, at + 20))) {
            while (/\s/.test(text[at])) at += 1;
            end = closed(text, closed(text, text.indexOf("(", at)));
            while (/^\s*else\b/.test(text.slice(end, end + 40))) end = closed(text, text.indexOf("{", end));
            end = Math.max(end, closed(text, text.indexOf("{", at)));
            one.parts.push(statements(text, at, end));
            at = end;
          } else one.parts.push(block());
        }
        found.push(one);
        continue;
      }
      for (end = at; end < to && text[end] !== ";";) end = "([{".indexOf(text[end]) >= 0 ? closed(text, end) : end + 1;
      found.push({ kind: "do", text: text.slice(at, end), at: at, parts: [] });
      at = end + 1;
    }
    return found;
  }

  /* ---- one entry point ---- */

  function walk(body, memory, own, tell) {
    /* Accesses since the last barrier. */
    function isOwn(text) { return words(text).some(function (word) { return own[word]; }); }
    function placeOf(index, guards) {
      guards.forEach(function (guard) {
        var same = /^([\w.]+)==(\w+)$/.exec(guard);
        if (same && isOwn(same[1]) && index === "[" + same[2].replace(/u$/, "") + "]") index = "[" + same[1] + "]";
      });
      return index;
    }
    function apart(one, other) {
      return one.guards.some(function (guard) {
        var less = /^([\w.]+)<([\w.]+)$/.exec(guard);
        return less && other.guards.indexOf(guard) >= 0 && one.index === "[" + less[1] + "]" && other.index === "[" + less[1] + "+" + less[2] + "]";
      });
    }
    function meet(seen, access) {
      if (access.kind === "write" && !isOwn(access.index) && !access.guards.some(function (guard) { return /==/.test(guard) && isOwn(guard); })) {
        return tell(access.at, "race", access.name);
      }
      if (!memory[access.name].isOfGroup) return null;
      seen.forEach(function (before) {
        if (before.name !== access.name || before.kind === "read" && access.kind === "read") return;
        if (before.kind === "write" && access.kind === "write" && isOwn(before.index) && isOwn(access.index)) return;
        var one = placeOf(before.index, before.guards), other = placeOf(access.index, access.guards);
        if (one === other && (isOwn(one) || before.guards.join() === access.guards.join() && access.guards.length)) return;
        if (apart(before, access) || apart(access, before)) return;
        tell(access.at, "barrier", access.name);
      });
      seen.push(access);
      return null;
    }
    /* What a piece of text reads; and writes, when it is a statement with an equals sign. */
    function touch(text, at, guards, seen) {
      var sign = /(^|[^=!<>])((?:[-+*\/%&|^]|<<|>>)?=)(?!=)/.exec(text), isWord = /^\s*(?:let|var|const)\b/.test(text);
      var left = sign && !isWord ? text.slice(0, sign.index + sign[1].length) : "";
      var name = isWord && /^\s*(?:let|var|const)\s*(?:<[^>]*>)?\s*(\w+)/.exec(text);
      var step = /^\s*([\w.\[\]\s+*\/%-]+?)\s*(\+\+|--)\s*$/.exec(text);
      if (step) left = step[1];
      function accesses(part, offset, kindOf) {
        Object.keys(memory).forEach(function (one) {
          var find = new RegExp("(^|[^\\w.])" + one + "\\b", "g"), hit, end, start;
          while ((hit = find.exec(part))) {
            start = hit.index + hit[1].length;
            end = start + one.length;
            while (/^\s*\[/.test(part.slice(end))) end = closed(part, part.indexOf("[", end));
            kindOf(start).forEach(function (kind) {
              meet(seen, { name: one, kind: kind, index: squeezed(part.slice(start + one.length, end)), guards: guards, at: at + offset + start });
            });
          }
        });
      }
      if (left) {
        accesses(text.slice(left.length), left.length, function () { return ["read"]; });
        var target = /^\s*/.exec(left)[0].length, both = step || sign && sign[2].length > 1;
        accesses(left, 0, function (start) { return start === target ? both ? ["read", "write"] : ["write"] : ["read"]; });
      } else accesses(text, 0, function () { return ["read"]; });
      if (name && (isOwn(text.slice(text.indexOf("=") + 1)) && text.indexOf("=") > 0 || /\batomicAdd\s*\(/.test(text))) own[name[1]] = true;
      else if (sign && !isWord && /^\s*\w+\s*$/.test(left) && isOwn(text.slice(left.length))) own[left.trim()] = true;
    }
    function go(list, guards, seen) {
      list.forEach(function (one) {
        if (one.kind === "do") {
          touch(one.text, one.at, guards, seen);
          if (BARRIER.test(one.text)) seen.length = 0;
        } else if (one.kind === "block") go(one.parts[0], guards, seen);
        else if (one.kind === "if") {
          touch(one.text, one.at, guards, seen);
          var after = [];
          one.parts.forEach(function (part, i) {
            var state = seen.slice(), more = i ? [] : one.text.split("&&").map(squeezed);
            go(part, guards.concat(more), state);
            after.push(state);
          });
          if (one.parts.length === 1) after.push(seen.slice());
          seen.length = 0;
          after.forEach(function (state) { state.forEach(function (access) { if (seen.indexOf(access) < 0) seen.push(access); }); });
        } else {
          var head = one.text.split(";");
          if (head.length === 3) touch(head[0], one.at, guards, seen);
          [0, 1].forEach(function () {
            touch(head.length === 3 ? head[1] : one.text, one.at, guards, seen);
            go(one.parts[0], guards, seen);
            if (head.length === 3) touch(head[2], one.at, guards, seen);
          });
        }
      });
    }
    go(body, [], []);
  }

  PercentOfPeak.yourGpu.look = function (source) {
    var text = plain(source), found = [], memory = {}, entry = /@compute\b[\s\S]*?\bfn\s+\w+\s*/g, hit;
    text.replace(/\bvar\s*<\s*(workgroup|storage\s*,\s*read_write)\s*>\s*(\w+)\s*:\s*([^;]+)/g, function (whole, space, name, type) {
      if (!/\batomic\b/.test(type)) memory[name] = { isOfGroup: space === "workgroup" };
    });
    while ((hit = entry.exec(text))) {
      var open = entry.lastIndex, close = closed(text, open), own = {}, head = text.slice(open, close), one;
      OWN.lastIndex = 0;
      while ((one = OWN.exec(head))) own[one[1]] = true;
      var begin = text.indexOf("{", close), end = closed(text, begin);
      walk(statements(text, begin + 1, end - 1), memory, own, function (at, kind, name) {
        var line = text.slice(0, at).split("\n").length, what = kind + " " + name;
        if (!found.some(function (other) { return other.what === what && other.line === line; })) found.push({ line: line, what: what });
      });
    }
    return found.sort(function (a, b) { return a.line - b.line; });
  };
})();
