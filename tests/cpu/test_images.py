"""The images that are committed beside their source were drawn from it, in the size that is asked for."""

import hashlib
import struct
from pathlib import Path

import pytest

ASSETS = Path(__file__).resolve().parents[2] / "docs" / "assets"
IMAGES = {
    "card.png": ("card.svg", (1200, 630)),
    "icon-180.png": ("icon.svg", (180, 180)),
    "icon-48.png": ("mark.svg", (48, 48)),
}


@pytest.mark.parametrize("name", IMAGES)
def test_an_image_is_drawn_from_its_source(name):
    source, size = IMAGES[name]
    png = (ASSETS / name).read_bytes()
    assert png[:8] == b"\x89PNG\r\n\x1a\n"
    assert struct.unpack(">II", png[16:24]) == size
    drawn_from = hashlib.sha256((ASSETS / source).read_bytes()).hexdigest()
    assert b"tEXtSource\0" + drawn_from.encode() in png, "draw it: python tests/browser/draw_images.py"
    assert len(png) < 80_000
