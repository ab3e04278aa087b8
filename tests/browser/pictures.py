"""Pictures of every page: desktop and phone, light and dark, in slices short enough to look at.

python tests/browser/pictures.py FOLDER [PAGE ...]        (COURSE_SITE names the built site, default site/)
"""

from __future__ import annotations

import sys
from pathlib import Path

from conftest import SITE, launch, pages_of, serve, settled
from playwright.sync_api import sync_playwright

SIZES = {"desktop": (1280, 900), "phone": (390, 844)}
SLICE = 2000


def main(folder: Path, wanted: list[str]) -> int:
    """Take the pictures and print their names."""
    folder.mkdir(parents=True, exist_ok=True)
    server, base = serve(SITE)
    taken = 0
    with sync_playwright() as playwright:
        browser = launch(playwright)
        for size, (width, height) in SIZES.items():
            for scheme in ("light", "dark"):
                page = browser.new_page(viewport={"width": width, "height": height}, color_scheme=scheme)
                for name in wanted or pages_of(SITE):
                    page.set_viewport_size({"width": width, "height": height})
                    settled(page, base + name)
                    page.add_style_tag(content=".md-header { position: static !important }")
                    total = page.evaluate("document.documentElement.scrollHeight")
                    page.set_viewport_size({"width": width, "height": total})
                    for start in range(0, total, SLICE):
                        stem = name.removesuffix(".html").replace("/", "-")
                        path = folder / f"{stem}.{size}.{scheme}.{start // SLICE + 1}.png"
                        clip = {"x": 0, "y": start, "width": width, "height": min(SLICE, total - start)}
                        page.screenshot(path=path, clip=clip)
                        print(path)
                        taken += 1
                page.close()
        browser.close()
    server.shutdown()
    return 0 if taken else 1


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit("pictures: name the folder to put them in")
    sys.exit(main(Path(sys.argv[1]), sys.argv[2:]))
