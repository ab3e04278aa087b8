"""Two files beside each other, line by line; and the answers of a station, which are made of their bounds."""

from pathlib import Path

import pytest

from course_site.pages.beside import CALLED, body, paired, parts
from course_site.pages.blocks import DirectiveError
from course_site.site.render.your_gpu import choices

LIBRARY = Path(__file__).parents[2] / "src" / "course_kernels"
PAIRS = sorted(path for path in LIBRARY.glob("*/*.wgsl") if path.with_suffix(".cu").is_file())


def sides(path: Path) -> tuple[list[str], list[str]]:
    return tuple(body(path.with_suffix(suffix).read_text(encoding="utf-8"))[1] for suffix in (".cu", ".wgsl"))


@pytest.mark.parametrize("path", PAIRS, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_every_line_stands_once_and_in_order(path: Path) -> None:
    left, right = sides(path)
    pairs = paired(left, right)

    assert [one for one, _ in pairs if one is not None] == list(range(len(left)))
    assert [one for _, one in pairs if one is not None] == list(range(len(right)))
    shown = [pair for part in parts(pairs, left, right) for pair in part]
    assert [left[one] for one, _ in shown if one is not None and left[one].strip()] == [
        s for s in left if s.strip()
    ]
    assert [right[one] for _, one in shown if one is not None and right[one].strip()] == [
        s for s in right if s.strip()
    ]


@pytest.mark.parametrize(
    ("kernel", "ours", "theirs"),
    [
        ("transpose/k02_tiled", "__syncthreads();", "workgroupBarrier();"),
        ("transpose/k02_tiled", "__shared__ float tile", "var<workgroup> tile"),
        ("reduction/k02_tree", "part[t] += part[t + half]", "part[t] += part[t + half]"),
        (
            "sgemm/k03_shared_tiles",
            "a_tile[row][i] * b_tile[i][column]",
            "a_tile[row][i] * b_tile[i][column]",
        ),
        ("softmax/k01_online", "/ l;", "/ whole.y"),
        ("vector_add/k01_cuda", "z[i] = x[i] + y[i]", "z[i] = x[i] + y[i]"),
    ],
)
def test_lines_that_say_the_same_are_partners(kernel: str, ours: str, theirs: str) -> None:
    left, right = sides(LIBRARY / f"{kernel}.wgsl")
    partners = [(left[i], right[j]) for i, j in paired(left, right) if i is not None and j is not None]

    assert any(ours in one and theirs in other for one, other in partners)


def test_most_of_each_kernel_has_a_partner() -> None:
    for path in PAIRS:
        left, right = sides(path)
        met = sum(i is not None and j is not None for i, j in paired(left, right))
        assert met >= 0.3 * min(len([s for s in left if s.strip()]), len([s for s in right if s.strip()])), (
            path
        )


def test_what_is_called_otherwise_has_one_name() -> None:
    assert all(other != name for name, other in CALLED.items())


def test_answers_are_made_of_bounds_that_go_up() -> None:
    assert choices([2, 6], "times") == ["less than 2 times", "2 to less than 6 times", "6 times or more"]
    assert choices([50], "percent") == ["less than 50 % of your roof", "50 % of your roof or more"]
    for wrong in ([], [6, 2], [2, 2]):
        with pytest.raises(DirectiveError, match="go up"):
            choices(wrong, "times")
