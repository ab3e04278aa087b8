"""Draw the images that browsers and other sites want as PNG, from their SVG: python tests/browser/draw_images.py

Each PNG carries the hash of what it was drawn from, so that tests/cpu/test_images.py can tell when one is out of date.
"""

from __future__ import annotations

import hashlib
import struct
import sys
import zlib
from pathlib import Path

from conftest import launch
from playwright.sync_api import sync_playwright

ASSETS = Path(__file__).parents[2] / "docs" / "assets"
# What is drawn from what: (SVG, width, height, whether there is paper behind it).
IMAGES = {
    "card.png": ("card.svg", 1200, 630, True),  # what other sites show of a link
    "icon-180.png": ("icon.svg", 180, 180, True),  # on the screen of a phone
    "icon-48.png": ("mark.svg", 48, 48, False),  # for browsers that take no SVG
}
PAGE = """<base href="{fonts}/"><style>
@font-face {{ font-family: "Source Serif 4"; font-weight: 200 900; src: url(source-serif-4-latin-wght-normal.woff2) }}
@font-face {{ font-family: "Source Sans 3"; font-weight: 200 900; src: url(source-sans-3-latin-wght-normal.woff2) }}
body {{ margin: 0 }} svg {{ display: block; width: {width}px; height: {height}px }}
</style>{svg}"""


def drawn_from(source: bytes) -> bytes:
    """What stands in a PNG about its source."""
    return b"Source\0" + hashlib.sha256(source).hexdigest().encode()


def signed(png: bytes, source: bytes) -> bytes:
    """A PNG with the hash of its source before its end."""
    said = b"tEXt" + drawn_from(source)
    chunk = struct.pack(">I", len(said) - 4) + said + struct.pack(">I", zlib.crc32(said))
    end = png.rindex(b"IEND") - 4
    return png[:end] + chunk + png[end:]


def main() -> int:
    """Draw them all."""
    with sync_playwright() as playwright:
        browser = launch(playwright)
        for name, (svg, width, height, is_opaque) in IMAGES.items():
            source = (ASSETS / svg).read_bytes()
            page = browser.new_page(viewport={"width": width, "height": height})
            fonts = (ASSETS / "vendor" / "fonts").as_uri()
            frame = ASSETS.parents[1] / ".cache" / "image.html"
            frame.parent.mkdir(exist_ok=True)
            text = PAGE.format(fonts=fonts, width=width, height=height, svg=source.decode())
            frame.write_text(text, encoding="utf-8")
            page.goto(frame.as_uri())
            page.evaluate("Promise.all([...document.fonts].map(font => font.load()))")
            png = page.screenshot(omit_background=not is_opaque)
            (ASSETS / name).write_bytes(signed(png, source))
            frame.unlink()
            page.close()
            print(ASSETS / name)
        browser.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
