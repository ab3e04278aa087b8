"""Wrong answers of a lab as edits of its right files: what is read, and what no longer fits is one line."""

import dataclasses
import re
from pathlib import Path

import pytest

from course_labs.lab import LabError, find_labs
from course_labs.wrong_answers import edited, wrong_answers, wrong_files

LABS = find_labs(Path(__file__).parents[2])
RIGHT = "def add(x, y):\n    z = x + y\n    return z\n"
TABLE = """
["wrong_minus.py"]
refused_for = "wrong"
of = "numpy/stage4.py"
edits = [['x + y', 'x - y']]
"""


@pytest.fixture
def lab(tmp_path):
    """A lab of two right files, one in Python and one in CUDA C++."""
    for name, text in {"numpy/stage4.py": RIGHT, "cuda/stage4.cu": "z[i] = x[i] + y[i];\n"}.items():
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_text(text)
    return dataclasses.replace(LABS["first_kernel"], name=tmp_path.name, folder=tmp_path)


def written(lab, text, **whole):
    """What is read of a lab with this wrong.toml and these whole files, by name."""
    (lab.folder / "wrong.toml").write_text(text)
    for stem, source in whole.items():
        (lab.folder / "wrong").mkdir(exist_ok=True)
        (lab.folder / "wrong" / f"{stem}.py").write_text(source)
    return {answer.name: answer for answer in wrong_answers(lab)}


def test_an_edit_makes_a_file_that_says_what_it_is_refused_for(lab):
    more = '["alone_wrong.cu"]\nrefused_for = "stuck"\ngpu_only = true\nof = "cuda/stage4.cu"\nedits = [["+", "-"]]'
    said = TABLE.replace('"wrong"', '"wrong"\nsays = "N=3"')
    found = written(lab, f"{said}{more}", wrong_whole="# refused for: not yours | torch.add\nimport torch\n")

    assert list(found) == ["alone_wrong.cu", "wrong_minus.py", "wrong_whole.py"]
    cuda, minus, whole = found.values()
    assert minus.text == f"# refused for: wrong | N=3\n{RIGHT.replace('+', '-')}"
    assert (minus.refused_for, minus.says, minus.gpu_only, minus.path) == ("wrong", "N=3", False, None)
    assert cuda.text == "// refused for: stuck | GPU only\nz[i] = x[i] - y[i];\n"
    assert (cuda.refused_for, cuda.says, cuda.gpu_only) == ("stuck", "", True)
    assert (whole.refused_for, whole.says, whole.path) == (
        "not yours", "torch.add", lab.folder / "wrong" / "wrong_whole.py",
    )  # fmt: skip

    files = wrong_files(lab)
    assert {path.name: path.read_text() for path in files} == {name: a.text for name, a in found.items()}
    assert files == wrong_files(lab)


def test_edits_are_made_in_the_right_file_and_not_in_each_other():
    assert edited("a b c", [["c", "a"], ["a", "c c"]]) == "c c b a"
    assert edited("a\nb\n", [["a\nb", "b\na"]]) == "b\na\n"
    assert edited("a b", [["b", ""]]) == "a "


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("'x + y'", "'x * y'", "'x * y' stands nowhere in the right file"),
        ("'x + y'", "'x'", "'x' stands 2 times in the right file"),
        ("['x + y', 'x - y']", "['x + y', 'x'], ['z = x', 'z = y']", "'x + y' overlaps the edit before it"),
        ("'x + y', 'x - y'", "'x + y'", "`edits` is a list of pairs, the old text and the new one"),
        ("'x + y'", "''", "`edits` is a list of pairs, the old text and the new one"),
        ("edits = ", "edit = ", "unknown key edit; known: refused_for, says, gpu_only, of, edits"),
        ('refused_for = "wrong"', "", "needs `refused_for`, a text; `says` is a text, `gpu_only` is true"),
        ('"wrong"', '"wrong"\ngpu_only = "yes"', "needs `refused_for`, a text; "),
        ("stage4.py", "stage5.py", "`of` is a right file of the lab that ends in .py"),
        ("numpy/stage4.py", "cuda/stage4.cu", "`of` is a right file of the lab that ends in .py"),
        ("wrong_minus.py", "wrong_minus.md", 'expected ["FILE.py"] or ["FILE.cu"] with a table'),
        ("wrong_minus.py", "../wrong_minus.py", 'expected ["FILE.py"] or ["FILE.cu"] with a table'),
        ("'x - y'", "'#include \"a.cuh\"'", "includes a file: keep it whole in wrong/"),
    ],
)
def test_what_does_not_fit_is_one_line(lab, old, new, said):
    assert old in TABLE
    with pytest.raises(LabError) as refused:
        written(lab, TABLE.replace(old, new))
    assert str(refused.value).startswith(f"{lab.folder / 'wrong.toml'}: ")
    assert said in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_right_file_that_changes_changes_its_wrong_ones_or_says_so(lab):
    right = lab.folder / "numpy" / "stage4.py"
    right.write_text(RIGHT.replace("return z", "return z.copy()"))
    assert "z.copy()" in written(lab, TABLE)["wrong_minus.py"].text

    right.write_text(RIGHT.replace("x + y", "y + x"))
    with pytest.raises(LabError, match=re.escape("wrong_minus.py: 'x + y' stands nowhere in the right file")):
        written(lab, TABLE)


def test_a_name_taken_twice_a_head_that_is_missing_and_no_toml_are_named(lab):
    with pytest.raises(LabError, match=r"wrong\.toml: wrong_minus\.py lies in wrong/ too"):
        written(lab, TABLE, wrong_minus="# refused for: wrong\n")
    with pytest.raises(LabError, match="its first line does not say what it is refused for"):
        written(lab, TABLE, wrong_minus="import torch\n")
    with pytest.raises(LabError, match=r"wrong\.toml: cannot be read: "):
        written(lab, "[x")


def test_every_lab_has_them_as_edits():
    """Whole files are for what has little in common with a right one."""
    made = [answer for lab in LABS.values() for answer in wrong_answers(lab)]
    assert len(made) > 600
    assert sum(answer.path is None for answer in made) > 0.85 * len(made)
