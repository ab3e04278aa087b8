"""Your first kernel: its commands check what they say, and the lab's answer is not read before it is asked for."""

import os
import re
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from course_labs.lab import find_lab
from course_site.pages.page import read_page

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs/start_here.py"


def commands(language):
    """The fenced code of a language on the page, without its margin."""
    text = "\n\n".join(c.source for c in read_page(PAGE, ROOT).cells if c.kind == "markdown")
    found = re.findall(rf"^( *)```{language}\n(.*?)^\1```", text, re.MULTILINE | re.DOTALL)
    return [textwrap.dedent(code) for _, code in found]


def checks():
    """Both checks that a reader is told to run, one after the other: at a prompt with a card, in a line without."""
    (at_a_prompt,) = [code for code in commands("python") if "vector_add" in code]
    (in_a_line,) = [code for code in commands("bash") if "TRITON_INTERPRET" in code]
    inside = re.search(r'TRITON_INTERPRET=1 PYTHONPATH=src python -c "\n(.*)"\n', in_a_line, re.DOTALL)[1]
    return at_a_prompt.replace(', device="cuda"', "") + inside


def said(source):
    environment = os.environ | {"TRITON_INTERPRET": "1", "PYTHONPATH": str(source)}
    done = subprocess.run([sys.executable, "-c", checks()], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def test_the_checks_that_are_typed_say_true():
    assert said(ROOT / "src") == ["True", "True"]


@pytest.mark.parametrize(
    ("right", "wrong"), [("x + y, mask=mask", "x + x, mask=mask"), ("[(programs,)]", "[(1,)]")]
)
def test_the_checks_that_are_typed_refuse_a_wrong_kernel(tmp_path, right, wrong):
    shutil.copytree(ROOT / "src/course_kernels", tmp_path / "course_kernels")
    kernel = tmp_path / "course_kernels/vector_add/k02_triton.py"
    text = kernel.read_text()
    assert text.count(right) == 1
    kernel.write_text(text.replace(right, wrong))
    assert said(tmp_path) == ["False", "False"]


# --- the lab asks ----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def rendered(our_course):
    return our_course[1]["start"].markdown


def open_above_the_lab(markdown):
    """What nobody had to unfold when the lab begins."""
    above, lab, _ = markdown.partition('<div class="lab"')
    assert lab
    shown, depth = [], 0
    for line in above.splitlines():
        depth += line.count("<details") - line.count("</details>")
        shown += [] if depth else [line.strip()]
    return shown


def answered(markdown, door="triton"):
    """Lines of the lab's kernel that stand open above it."""
    lab = find_lab(ROOT, "first_kernel")
    starter = lab.snapshot(door, 0).read_text().splitlines()
    answer = lab.snapshot(door, len(lab.stages)).read_text().splitlines()
    typed = {line.strip() for line in answer if line not in starter}
    shown = {line.partition("  #")[0].strip() for line in open_above_the_lab(markdown)}
    return {line for line in typed if line.partition("  #")[0].strip() in shown - {""}}


def test_the_triton_kernel_is_folded_above_the_lab_that_asks_for_it(rendered):
    assert answered(rendered) == set()
    assert "<summary>Our kernel in Triton</summary>" in rendered


def test_an_answer_that_stands_open_would_be_found(rendered):
    kernel = (ROOT / "src/course_kernels/vector_add/k02_triton.py").read_text()
    assert len(answered(f"{kernel}\n{rendered}")) >= 3
