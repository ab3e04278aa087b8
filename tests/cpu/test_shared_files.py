"""What all editions share is found one folder up from an edition beside the reference, and its own pages are not."""

import pytest
from jinja2 import Environment

from course_site.site.shared_files import FILTERS

FILES = ("assets/css/site.css", "LICENSE.txt", "numbers.html")
SAID = " ".join(f"{{{{ '{name}' | url }}}}" for name in FILES) + " {{ 'assets/a.js' | script_tag }}"


@pytest.mark.parametrize(("base", "up"), [(".", ""), ("..", "../")])
def test_the_frame_finds_both(base, up):
    env = Environment()
    env.filters |= FILTERS
    said = env.from_string(SAID).render(base_url=base, page=None)
    sheet, licence, page, script = said.split(" ", 3)
    assert sheet.replace("/./", "/") == f"../{up}assets/css/site.css"
    assert licence.replace("/./", "/") == f"../{up}LICENSE.txt"
    assert page.removeprefix("./") == f"{up}numbers.html"
    assert script.replace("/./", "/") == f'<script src="../{up}assets/a.js"></script>'
