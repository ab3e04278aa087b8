"""The rules of axe over a page, with one shortcut: a text that looks like one that passed is not measured again."""

from __future__ import annotations

from functools import cache

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page

# The rules that look at colours. All others look at the elements, and at where these stand.
OF_COLOUR = {"runOnly": ["color-contrast", "link-in-text-block"]}
SHOWN = 12  # of one rule; a wrong colour of all code tokens is said, not listed

# Looks that passed on any page that this process has seen.
PASSED: set[int] = set()

# axe measures the contrast of thousands of table cells and code tokens one by one, which was nine tenths of its time,
# and most of them look alike: the same letters before the same row of ancestors with the same backgrounds. Once one of
# a look has passed, the others of that look pass, on this page and on every other with the same style sheets. Nothing
# else is shared: not a refusal, not "cannot tell", and not the answer of a text that anything but its ancestors lies
# over or under, nor that of a form's field.
REMEMBER = """() => {
  const check = axe._audit.checks['color-contrast'], measure = check.evaluate, ids = new Map();
  const id = parts => {  // 53 bits of the text, the same on every page
    const text = parts.join('|');
    if (!ids.has(text)) {
      let a = 0xdeadbeef, b = 0x41c6ce57;
      for (let i = 0; i < text.length; i++) {
        const c = text.charCodeAt(i);
        a = Math.imul(a ^ c, 2654435761);
        b = Math.imul(b ^ c, 1597334677);
      }
      a = Math.imul(a ^ (a >>> 16), 2246822507) ^ Math.imul(b ^ (b >>> 13), 3266489909);
      b = Math.imul(b ^ (b >>> 16), 2246822507) ^ Math.imul(a ^ (a >>> 13), 3266489909);
      ids.set(text, 4294967296 * (2097151 & b) + (a >>> 0));
    }
    return ids.get(text);
  };
  let behind, painted, passed, added, styles;
  const backdrop = e => {
    if (!e) return styles;
    if (behind.has(e)) return behind.get(e);
    const s = getComputedStyle(e);
    const found = id([backdrop(e.parentElement), s.backgroundColor, s.backgroundImage, s.backgroundClip, s.opacity,
      s.filter, s.mixBlendMode, s.position, s.zIndex, s.float, s.visibility, s.display, s.overflow, s.clip, s.clipPath,
      s.transform, e.matches(':disabled, [aria-disabled], [inert], label, svg')]);
    behind.set(e, found);
    return found;
  };
  const look = e => {
    if (e.matches('input, select, textarea')) return null;
    painted ??= [...document.body.querySelectorAll('*')].filter(p => p.checkVisibility()).filter(p => {
      const s = getComputedStyle(p);
      return s.backgroundImage != 'none' || !/^rgba\\(.* 0\\)$/.test(s.backgroundColor)
        || p.matches('img, svg, canvas, video, iframe');
    }).map(p => [p, p.getBoundingClientRect()]).filter(([_, b]) => b.width && b.height);
    const a = e.getBoundingClientRect();
    if (painted.some(([p, b]) => b.left < a.right - 1 && b.right > a.left + 1 && b.top < a.bottom - 1
        && b.bottom > a.top + 1 && !p.contains(e) && !e.contains(p))) return null;
    const s = getComputedStyle(e);
    return id([backdrop(e), s.color, s.webkitTextFillColor, s.webkitTextStroke, s.fontSize, s.fontWeight, s.textShadow,
      s.fill, s.stroke, s.textIndent]);
  };
  check.evaluate = function (element, ...rest) {
    const seen = look(element);
    if (passed.has(seen)) return true;
    const answer = measure.call(this, element, ...rest);
    if (answer === true && seen !== null) { passed.add(seen); added.push(seen); }
    return answer;
  };
  window.axeFaults = async ([options, before]) => {
    behind = new Map(); painted = undefined;  // the page may have other colours now
    passed = new Set(before); added = [];
    // What no look says, such as what is painted before and behind an element, the same style sheets say. The one with
    // a page's title, which is for paper, says nothing of it.
    styles = id([...document.styleSheets].map(sheet => sheet.href ?? sheet.ownerNode?.textContent.trim())
      .filter(text => !text?.startsWith('@page')));
    return [(await axe.run({...options, resultTypes: ['violations']})).violations, added];
  };
}"""


@cache
def script() -> str:
    return Axe().axe_script


def faults(page: Page, options: dict[str, list[str]] | None = None) -> list[str]:
    """What axe finds wrong, one line each."""
    if not page.evaluate("'axeFaults' in window"):
        page.evaluate(script())
        page.evaluate(REMEMBER)
    found = []
    rules, passed = page.evaluate("asked => axeFaults(asked)", [options or {}, sorted(PASSED)])
    PASSED.update(passed)
    for rule in rules:
        lines = [
            f"{rule['id']}: {node['target'][0]}: {node['failureSummary'].splitlines()[-1].strip()}"
            for node in rule["nodes"]
        ]
        found += lines[:SHOWN]
        if len(lines) > SHOWN:
            found.append(f"{rule['id']}: and {len(lines) - SHOWN} more")
    return found
