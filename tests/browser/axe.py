"""The rules of axe over a page: all of them but contrast at once, and contrast once for every look a text has."""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page

ALLOWED = json.loads(Path(__file__).with_name("axe_allowed.json").read_text(encoding="utf-8"))
# The rules that look at colours. All others look at the elements, and where these stand.
OF_COLOUR = ["color-contrast", "link-in-text-block"]

# axe measures the contrast of thousands of table cells and code tokens, one by one, and most of them look alike: the
# same letters, before the same row of ancestors with the same backgrounds. So one of each look is measured. A look that
# axe gave no answer for (its first text was hidden, or half covered) is measured in all its texts, and so is every text
# that anything but its ancestors lies over or under.
CONTRAST = """async () => {
  const ids = new Map(), below = new Map(), painted = [], looks = new Map(), alone = [];
  const id = (...parts) => {
    const text = parts.join('|');
    if (!ids.has(text)) ids.set(text, ids.size);
    return ids.get(text);
  };
  for (const e of document.querySelectorAll('*')) {  // in the document's order: a parent before its children
    const s = getComputedStyle(e);
    below.set(e, id(below.get(e.parentElement), s.backgroundColor, s.backgroundImage, s.opacity, s.filter,
      s.mixBlendMode, s.position, s.zIndex, s.float, s.visibility, s.display, s.overflow, s.clip, s.clipPath,
      s.transform, s.pointerEvents, e.matches(':disabled, [aria-disabled], [inert], label, svg')));
    const box = e.getBoundingClientRect();
    if (box.width && box.height && (s.backgroundImage != 'none' || !/^rgba\\(.* 0\\)$/.test(s.backgroundColor)
        || e.matches('img, svg, canvas, video, iframe'))) painted.push([e, box]);
  }
  for (const e of document.body.querySelectorAll('*')) {
    const control = e.matches('input, select, textarea, button');
    if (!control && ![...e.childNodes].some(n => n.nodeType == 3 && n.data.trim())) continue;
    const a = e.getBoundingClientRect();
    if (control || painted.some(([p, b]) => b.left < a.right - 1 && b.right > a.left + 1 && b.top < a.bottom - 1
        && b.bottom > a.top + 1 && !p.contains(e) && !e.contains(p))) { alone.push(e); continue; }
    const s = getComputedStyle(e);
    const look = id(below.get(e), e.checkVisibility(), s.color, s.webkitTextFillColor, s.fontSize, s.fontWeight,
      s.textShadow, s.webkitTextStroke, s.textIndent);
    if (!looks.has(look)) looks.set(look, []);
    looks.get(look).push(e);
  }
  const measure = async include => {
    if (!include.length) return [[], []];
    const found = await axe.run({include}, {runOnly: ['color-contrast'], preload: false, elementRef: true});
    return [found.violations, [...found.violations, ...found.passes].flatMap(r => r.nodes.map(n => n.element))];
  };
  const [violations, judged] = await measure([...alone, ...[...looks.values()].map(all => all[0])]);
  const answered = new Set(judged);
  const [more] = await measure([...looks.values()].filter(all => !answered.has(all[0])).flatMap(all => all.slice(1)));
  for (const node of violations.flatMap(rule => rule.nodes)) {
    const alike = [...looks.values()].find(all => all[0] == node.element);
    if (alike?.length > 1) node.target[0] += ` (and ${alike.length - 1} more that look like it)`;
  }
  return [...violations, ...more].map(rule => ({id: rule.id, nodes: rule.nodes.map(
    node => ({target: node.target, failureSummary: node.failureSummary}))}));
}"""


@cache
def script() -> str:
    return Axe().axe_script


def faults(page: Page, only_colour: bool = False) -> list[str]:
    """What axe finds wrong and nobody has allowed, one line each."""
    page.evaluate(script())
    rules = (
        {"runOnly": [rule for rule in OF_COLOUR if rule != "color-contrast"]}
        if only_colour
        else {"rules": {"color-contrast": {"enabled": False}}}
    )
    options = {**rules, "resultTypes": ["violations"]}
    found = page.evaluate("options => axe.run(options).then(results => results.violations)", options)
    found += page.evaluate(CONTRAST)
    return [
        f"{rule['id']}: {node['target'][0]}: {node['failureSummary'].splitlines()[-1].strip()}"
        for rule in found
        for node in rule["nodes"]
        if not any(
            a["rule"] == rule["id"] and re.search(a["selector"], str(node["target"][0])) for a in ALLOWED
        )
    ]
