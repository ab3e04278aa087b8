"""What is wrong with the letters of the figures and charts on a page: too small to read, cut off, one on another."""

from __future__ import annotations

from playwright.sync_api import Page

LEAST = 10  # px, as they stand on the screen

# A box of text is taller than its letters: the band from the top of a capital to a bit below the line counts.
_LETTERS = """least => [...document.querySelectorAll('figure svg, .figure svg')].flatMap(svg => {
  const edge = svg.getBoundingClientRect();
  if (!edge.width) return [];
  const scale = edge.width / svg.viewBox.baseVal.width, found = [], range = document.createRange();
  const name = (svg.querySelector('title')?.textContent || svg.getAttribute('aria-label') || 'a figure').slice(0, 50);
  const letters = document.createTreeWalker(svg, NodeFilter.SHOW_TEXT,
    node => node.data.trim() && node.parentElement.closest('text') ? 1 : 3);
  const pieces = [];
  while (letters.nextNode()) {
    const node = letters.currentNode, text = node.parentElement.closest('text');
    const size = parseFloat(getComputedStyle(node.parentElement).fontSize) * scale;
    const said = JSON.stringify(node.data.trim());
    if (size < least) found.push(`${said} has letters of ${size.toFixed(1)} px`);
    range.selectNodeContents(node);
    const {left, right, top, bottom} = range.getBoundingClientRect(), turned = Math.abs(text.getScreenCTM().b) > .01;
    if (node.parentElement.closest("defs")) continue;   // drawn elsewhere, by a pointer
    const air = turned ? 0 : (bottom - top) / 4;
    pieces.push({text, said, turned, left, right, top: top + air, bottom: bottom - air});
  }
  for (const [i, a] of pieces.entries()) {
    if (a.left < edge.left - 3 || a.right > edge.right + 3 || a.top < edge.top - 3 || a.bottom > edge.bottom + 3)
      found.push(`${a.said} reaches past the edge`);
    if (!a.turned)
      for (const b of pieces.slice(i + 1))
        if (b.text !== a.text && !b.turned && Math.min(a.right, b.right) - Math.max(a.left, b.left) > 0.5
            && Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 1)
          found.push(`${a.said} and ${b.said} lie on each other`);
  }
  return found.slice(0, 3).map(fault => `${name}: ${fault}`);
})"""


def faults(page: Page) -> list[str]:
    """Of every figure that can be seen: open the folds first."""
    return page.evaluate(_LETTERS, LEAST)
