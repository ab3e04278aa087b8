"""A move makes no record stale, and nothing that changed its meaning passes for a move."""

from __future__ import annotations

import itertools
import json
import pickle
import re
import shutil
import subprocess
from pathlib import Path, PurePath

import pytest

from course_kernels.cuda import includes
from course_site import docs
from course_site.pages.page import read_page
from course_site.records import gpu_test_records, plan, record_checks, renames, run_history
from course_site.records.digest import code_digest, code_digests, cuda_digest, digest_of, file_digest
from course_site.records.record import Record, build_record, record_path, stale_reasons

ROOT = Path(__file__).resolve().parents[2]
KERNELS = "src/course_kernels"
PROVENANCE = {"gpu": "NVIDIA H200", "cuda": "13.0", "torch": "2.11.0", "triton": "3.6.0", "dirty": False}


def mapped(**names):
    """A map of files of one folder, `old="new"`, and of folders of problems where a name ends in two underscores."""
    lines = [
        f'"{KERNELS}/{old[:-2]}" = "{KERNELS}/{new}"'
        if old.endswith("__")
        else f'"{KERNELS}/gemm/{old}.py" = "{KERNELS}/gemm/{new}.py"\n'
        f'"{KERNELS}/gemm/{old}.cuh" = "{KERNELS}/gemm/{new}.cuh"'
        for old, new in names.items()
    ]
    return renames.read("\n".join(lines))


# --- the map ----------------------------------------------------------------------------------------


def test_the_map_of_the_repository_holds():
    found = renames.load(ROOT)
    for old, new in found.entries.items():
        assert not (ROOT / old).exists(), old
        assert (ROOT / found.present(new)).exists(), new


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a = ", "is not TOML"),
        ('"/a" = "b"', "'/a' is not a path"),
        ('"a" = "b/../c"', "is not a path"),
        ('"a" = 3', "3 is not a path"),
        ('"a.py" = "b.cu"', "a.py and b.cu are not of one kind"),
        ('"a" = "a"', "is both said to be a"),
        ('"a.py" = "c.py"\n"b.py" = "c.py"', "b.py and a.py are both said to be c.py"),
        ('"a.py" = "b.py"\n"b.py" = "a.py"', "is renamed in a circle"),
        ('"a.py" = "b.py"\n"b.py" = "c.py"\n"c.py" = "a.py"', "is renamed in a circle"),
        ('"src/a.py" = "src/a/b.py"', "is renamed in a circle"),
        ('"a/__init__.py" = "b/__init__.py"', "name its folder"),
        ('"a/q.py" = "c.py"\n"a" = "b"\n"b/q.py" = "b/x.py"', "b/x.py is the name of two files"),
    ],
)
def test_a_map_that_is_not_one_to_one_is_refused_when_it_is_read(text, said):
    with pytest.raises(renames.RenamesWrong, match=re.escape(said)) as error:
        renames.read(text)
    assert str(error.value).startswith("records/renames.toml: ")
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("files", "said"),
    [
        (["a/old.py", "a/new.py"], "a/old.py is there"),
        (["a/other.py"], "a/old.py is said to be src/a/new.py today, which is not there"),
        (["a/old/__init__.py", "a/new.py"], "a/old.py is there"),
        (["a/new.py", "b/now/once.py", "b/now/today.py"], "b/now/once.py has the old name"),
    ],
)
def test_a_map_that_the_files_contradict_is_refused(tmp_path, files, said):
    text = '"src/a/old.py" = "src/a/new.py"\n'
    if len(files) == 3:
        text += '"src/b/was/once.py" = "src/b/was/today.py"\n"src/b/was" = "src/b/now"\n'
    write(tmp_path, "records/renames.toml", text)
    for file in files:
        write(tmp_path, f"src/{file}", "")
    with pytest.raises(renames.RenamesWrong, match=re.escape(said)):
        renames.load(tmp_path)


@pytest.mark.parametrize("left", ["__pycache__/k.cpython-311.pyc", "k.cu"])
def test_a_folder_that_holds_only_what_python_compiled_is_gone(tmp_path, left):
    """Git moves the sources, and leaves the folder with its cache."""
    write(tmp_path, "records/renames.toml", '"src/a" = "src/b"\n')
    write(tmp_path, "src/b/k.py", "")
    write(tmp_path, f"src/a/{left}", "")
    if left.endswith(".pyc"):
        assert renames.load(tmp_path).present("src/a/k.py") == "src/b/k.py"
    else:
        with pytest.raises(renames.RenamesWrong, match="src/a is there"):
            renames.load(tmp_path)


def test_the_command_says_in_one_line_what_is_wrong_with_the_map(tmp_path, capsys):
    write(tmp_path, "records/renames.toml", '"a.py" = "b.py"')
    assert docs.main(["--plan"], tmp_path) == 2
    assert capsys.readouterr().err == (
        "docs: records/renames.toml: a.py is said to be b.py today, which is not there\n"
    )


def test_a_course_can_be_kept_with_its_renames():
    asked = renames.Renames({"src/a/b.py": "src/a/c.py"})
    assert asked.present("src/a/b.py") == "src/a/c.py"
    kept = pickle.loads(pickle.dumps(asked))
    assert (kept.entries, kept.present("src/a/b.py")) == (asked.entries, "src/a/c.py")


def test_a_chain_and_a_folder_are_followed_to_the_end_and_back():
    chain = renames.read('"d/a.py" = "d/b.py"\n"d" = "e"\n"e/b.py" = "e/c.py"')
    assert [chain.present(name) for name in ("d/a.py", "d/b.py", "e/b.py", "e/c.py")] == ["e/c.py"] * 4
    assert chain.paths.oldest("e/c.py") == chain.paths.first("d/b.py") == "d/a.py"
    assert chain.present("d/x.py") == "e/x.py"
    oldest = [chain.paths.oldest(name) for name in ("e/c.py", "e/b.py", "d/a.py", "d/b.py", "e/x.py", "f.py")]
    assert len(set(oldest)) == 6


# --- digests ------------------------------------------------------------------------------------------

USER = """
from course_kernels.cuda.launch import launch
from course_kernels.gemm import arguments, by_address, by_tiles
from course_kernels.gemm.by_address import kept

SOURCE = "by_address.cuh"
WHOLE = "src/course_kernels/gemm/by_address.py"

def run(x, **options):
    module = __import__("course_kernels.gemm.by_address")
    return by_address.prepare(x, by_tiles.TILE), f"in course_kernels.gemm.by_address: {kept}"
"""
USER_NOW = """
from course_kernels.cuda.launch import launch
from course_kernels.gemm import arguments, by_tiles, launch_cache
from course_kernels.gemm.launch_cache import kept

SOURCE = "launch_cache.cuh"
WHOLE = "src/course_kernels/gemm/launch_cache.py"

def run(x, **options):
    module = __import__("course_kernels.gemm.launch_cache")
    return launch_cache.prepare(x, by_tiles.TILE), f"in course_kernels.gemm.launch_cache: {kept}"
"""
PATH = f"{KERNELS}/gemm/k01.py"
CACHE = mapped(by_address="launch_cache")


def test_a_renamed_module_is_the_same_in_imports_variables_strings_and_includes():
    assert code_digest(USER_NOW, CACHE, PATH) == code_digest(USER)
    include = '#include "{}.cuh"\nint x; const char *s = "by_address.cuh";'
    assert cuda_digest(include.format("launch_cache"), CACHE, PATH) == cuda_digest(
        include.format("by_address")
    )
    moved = renames.read(f'"{KERNELS}/cuda/a.cuh" = "{KERNELS}/cuda/b.cuh"')
    assert cuda_digest('#include "../cuda/b.cuh"', moved, PATH) == cuda_digest('#include "../cuda/a.cuh"')


@pytest.mark.parametrize(
    ("now", "then"),
    [
        (
            "arguments, by_tiles, launch_cache",
            "arguments, by_address, by_tiles",
        ),  # only one place keeps the old name
        ("launch_cache.prepare", "by_address.prepare"),
        ("launch_cache.prepare", "by_tiles.prepare"),
        ("gemm.launch_cache import", "gemm.by_address import"),
        ('"launch_cache.cuh"', '"by_address.cuh"'),
        ("gemm/launch_cache.py", "gemm/by_address.py"),
        ('__("course_kernels.gemm.launch_cache")', '__("course_kernels.gemm.by_address")'),
        ("in course_kernels.gemm.launch_cache", "in course_kernels.gemm.by_address"),
        ("by_tiles, launch_cache", "launch_cache, by_tiles"),  # imports in another order
        ("**options", "**launch_cache"),  # the name is bound again
        ("def run(x", "def run(by_address"),  # the old name is in use
        ("by_tiles.TILE", "by_tiles.HEIGHT"),
    ],
)
def test_what_is_no_rename_changes_the_digest(now, then):
    assert USER_NOW.count(now) == 1
    assert code_digest(USER_NOW.replace(now, then), CACHE, PATH) != code_digest(USER)


@pytest.mark.parametrize(
    ("now", "then"),
    [
        ("gemm/launch_cache", "gemm/by_address"),
        ("gemm/launch_cache.f --workload", "gemm/by_address.f --workload"),
        ("course_kernels/gemm/launch_cache.cuh", "course_kernels/gemm/by_address.cuh"),
        ("see src/course_kernels/gemm/launch_cache.py.", "see src/course_kernels/gemm/by_address.py."),
    ],
)
def test_paths_and_the_ids_of_kernels_are_renamed_in_strings(now, then):
    assert (
        code_digest(f"x = {now!r}", CACHE)
        == code_digest(f"x = {then!r}")
        != code_digest(f"x = {then!r}", CACHE)
    )


def test_a_used_old_name_and_a_bound_new_one_are_told_apart():
    """What cannot be mapped one to one keeps its name, and none of these is another one."""
    begin = "from course_kernels.gemm import launch_cache\n"
    sources = [
        begin + "launch_cache.f(1)",
        begin + "by_address.f(1)",
        begin + "by_address = 1",
        begin + "launch_cache = 1",
        begin + "by_address = 1\nlaunch_cache.f(1)",
        begin.replace("launch_cache", "launch_cache as by_address") + "by_address.f(1)",
        begin.replace("launch_cache", "by_address") + "by_address.f(1)",
        begin.replace("launch_cache", "by_address as launch_cache") + "launch_cache.f(1)",
        "import course_kernels.gemm.launch_cache",
        "import course_kernels.gemm.by_address",
        "from course_kernels.gemm_fp8 import launch_cache\nlaunch_cache.f(1)",
        "from course_kernels.gemm_fp8 import by_address\nby_address.f(1)",
    ]
    assert len({code_digest(source, CACHE, PATH) for source in sources}) == len(sources)


@pytest.mark.parametrize(
    "binds",
    ["def f({}): ", "class {}: ", "for {} in x: ", "try: x\nexcept E as {}: ", "match x:\n case {}: "],
)
def test_a_variable_that_is_bound_anew_is_not_the_module(binds):
    """The module before, and whatever else is called as it is now."""
    then = f"from course_kernels.gemm import by_address\n{binds.format('launch_cache')}by_address()"
    now = then.replace("by_address", "launch_cache")
    assert code_digest(now, CACHE, PATH) != code_digest(then)


def test_no_two_sources_become_one_whatever_is_written_in_them():
    """Every choice of names in small files: as many digests as files."""
    names = renames.read(
        f'"{KERNELS}/a" = "{KERNELS}/b"\n"{KERNELS}/b/m.py" = "{KERNELS}/b/n.py"\n"{KERNELS}/p.py" = "{KERNELS}/q.py"'
    )
    for places in (
        "from course_kernels.{} import {}\n{}({}={})\n",
        'from course_kernels import {} as {}\n{}.{}("{}")\n',
        'from course_kernels import {}\nimport course_kernels.{}\ndef {}(): return "course_kernels.{}.{}"\n',
    ):
        for path in (f"{KERNELS}/b/k01.py", "docs/a.py"):
            for words in (("a", "b", "c"), ("m", "n", "b"), ("p", "q", "b")):
                sources = [places.format(*chosen) for chosen in itertools.product(words, repeat=5)]
                seen = {code_digest(source, names, path): source for source in sources}
                assert len(seen) == len(sources), (words, path)


def test_a_renamed_problem_brings_its_function_along():
    then = "from course_kernels.grey import k01\nk01.grey(grey=3)\nname = 'grey'\n"
    now = then.replace("grey", "grayscale")
    names = mapped(grey__="grayscale")
    assert code_digest(now, names, "docs/a.py") == code_digest(then)
    for one in ("k01.grayscale(", "(grayscale=", "'grayscale'"):
        assert code_digest(now.replace(one, one.replace("grayscale", "grey")), names) != code_digest(then)
    # A file that has nothing to do with the problem says what it says.
    for word in ("grey", "grayscale"):
        assert code_digest(f"x = {word!r}", names, "docs/a.py") == code_digest(f"x = {word!r}")
    inside = f"{KERNELS}/grayscale/k01.cu"
    assert cuda_digest("void grayscale(int x);", names, inside) == cuda_digest("void grey(int x);")
    assert cuda_digest("void grey(int x);", names, inside) != cuda_digest("void grey(int x);")
    lab, inside = b'name = "dots"\nproblem = "%s"', PurePath("labs/dots/lab.toml")
    assert digest_of(inside, lab % b"grayscale", names) == digest_of(inside, lab % b"grey")
    assert digest_of(inside, lab % b"grey", names) != digest_of(inside, lab % b"grey")


def test_cells_of_a_page_share_what_one_of_them_imports():
    cells = ("from course_kernels.grey import k01", "k01.grey(3)", "grey = 'a colour'")
    now = tuple(cell.replace("k01.grey", "k01.grayscale").replace("s.grey", "s.grayscale") for cell in cells)
    digests = code_digests(now, mapped(grey__="grayscale"), "docs/a.py")
    assert digests[:2] == code_digests(cells)[:2]
    assert digests[2] != code_digests(cells)[2]  # the old name in a page of the problem


@pytest.mark.parametrize(
    ("old", "new", "source", "same"),
    [
        ("a/x.py", "a/y.py", "HERE = Path(__file__).with_suffix('.cu')", True),
        ("a/x.py", "b/x.py", "HERE = Path(__file__).with_suffix('.cu')", False),
        ("a/x.py", "b/x.py", "if __name__ == '__main__': run()", True),
        ("a/x.py", "b/x.py", "print(__name__)", False),
        ("a", "b", "HERE = Path(__file__).with_suffix('.cu')", True),
        ("a", "b", "ROOT = Path(__file__).parents[2]", True),  # a folder renamed where it lies
        ("a", "c/b", "HERE = Path(__file__).with_suffix('.cu')", True),
        ("a", "c/b", "ROOT = Path(__file__).parents[2]", False),
        ("a", "c/b", "ROOT = Path(__file__).parent.parent", False),
    ],
)
def test_a_file_that_asks_where_it_lies_is_another_one_elsewhere(old, new, source, same):
    names = renames.read(f'"src/{old}" = "src/{new}"')
    path = f"src/{new}" if new.endswith(".py") else f"src/{new}/x.py"
    assert (code_digest(source, names, path) == code_digest(source)) is same


# --- records ------------------------------------------------------------------------------------------


def write(root, path, text):
    file = root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    return file


@pytest.fixture
def small(tmp_path):
    """A page, a kernel that was timed with it, and what both import."""
    page = (
        "# ---\n# id: p\n# title: P\n# needs: [gpu]\n# ---\n# %%\nfrom course_kernels.one import k01_first\n"
    )
    write(tmp_path, "docs/p.py", page)
    for name in ("k01_first", "k02_second"):
        write(tmp_path, f"{KERNELS}/one/{name}.py", f"SIZE = {name[2]}\n")
    page = read_page(tmp_path / "docs/p.py", tmp_path)
    manifest = {f"{KERNELS}/one/k01_first.py": file_digest(tmp_path, f"{KERNELS}/one/k01_first.py")}
    leaf = {"kind": "counted", "kernel": "one/k01_first", "workload": {}}
    output = {"output_type": "display_data", "metadata": {}, "data": {MIME: {"names": {"it": leaf}}}}
    provenance = PROVENANCE | {"date": "2026-11-01T00:00:00+00:00"}
    build_record(page, [[output]], [1.0], manifest, provenance).save(
        record_path(tmp_path, "nvidia-h200", page)
    )
    return tmp_path


MIME = "application/vnd.course.record+json"


def said(root, path="docs/p.py"):
    page = read_page(root / path, root)
    record = Record.load(record_path(root, "nvidia-h200", page), renames.load(root))
    return stale_reasons(page, record, root), record


def renamed(root, old, new, text):
    (root / new).parent.mkdir(exist_ok=True)
    (root / old).rename(root / new)
    file = root / "records/renames.toml"
    write(root, "records/renames.toml", (file.read_text() if file.exists() else "") + f'"{old}" = "{new}"\n')
    page = root / "docs/p.py"
    if page.exists():
        page.write_text(page.read_text().replace(*text))


def test_a_record_is_read_by_the_present_names(small):
    renamed(small, f"{KERNELS}/one/k01_first.py", f"{KERNELS}/one/k01_begin.py", ("k01_first", "k01_begin"))
    renamed(small, f"{KERNELS}/one", f"{KERNELS}/uno", ("kernels.one", "kernels.uno"))
    reasons, record = said(small)
    assert reasons == []
    assert record.names["it"]["kernel"] == "uno/k01_begin"
    renamed(small, "docs/p.py", "docs/q.py", ("", ""))
    assert said(small, "docs/q.py")[0] == []
    assert record_path(small, "nvidia-h200", read_page(small / "docs/q.py", small)).name == "p.ipynb"


def test_a_changed_literal_under_a_renamed_path_is_refused_by_its_new_name(small):
    renamed(small, f"{KERNELS}/one/k01_first.py", f"{KERNELS}/one/k01_begin.py", ("k01_first", "k01_begin"))
    write(small, f"{KERNELS}/one/k01_begin.py", "SIZE = 3\n")
    assert said(small)[0] == [f"{KERNELS}/one/k01_begin.py changed"]


def test_an_entry_that_points_a_record_at_another_kernel_is_refused(small):
    """The planted wrong rename: the second kernel passes for the first."""
    (small / KERNELS / "one/k01_first.py").unlink()
    wrong = f'"{KERNELS}/one/k01_first.py" = "{KERNELS}/one/k02_second.py"\n'
    write(small, "records/renames.toml", wrong)
    page = small / "docs/p.py"
    page.write_text(page.read_text().replace("k01_first", "k02_second"))
    assert said(small)[0] == [f"{KERNELS}/one/k02_second.py changed"]
    page.write_text(page.read_text().replace("k02_second", "k01_first"))
    assert said(small)[0] == ["docs/p.py: code cell 1 changed", f"{KERNELS}/one/k02_second.py changed"]


def test_without_its_entry_a_move_makes_a_record_stale(small):
    renamed(small, f"{KERNELS}/one/k01_first.py", f"{KERNELS}/one/k01_begin.py", ("k01_first", "k01_begin"))
    (small / "records/renames.toml").unlink()
    assert said(small)[0] == ["docs/p.py: code cell 1 changed", f"{KERNELS}/one/k01_first.py is gone"]


def test_a_record_that_is_made_after_a_rename_outlives_the_next_one(small):
    renamed(small, f"{KERNELS}/one/k01_first.py", f"{KERNELS}/one/k01_b.py", ("k01_first", "k01_b"))
    page, names = read_page(small / "docs/p.py", small), renames.load(small)
    manifest = {f"{KERNELS}/one/k01_b.py": file_digest(small, f"{KERNELS}/one/k01_b.py")}
    before = said(small)[1]
    record = build_record(page, before.outputs, [1.0], manifest, before.meta["provenance"], names=names)
    record.save(record_path(small, "nvidia-h200", page))
    renamed(small, f"{KERNELS}/one/k01_b.py", f"{KERNELS}/one/k01_c.py", ("k01_b", "k01_c"))
    assert said(small)[0] == []
    # It is a run of the same code as the one before.
    codes = {run_history._code(one, renames.load(small)) for one in (before, record)}
    assert len(codes) == 1


def test_the_commit_of_a_record_is_read_by_the_names_of_that_commit(small):
    git = ["git", "-C", str(small), "-c", "user.name=A", "-c", "user.email=a@b"]

    def commit():
        for words in (["add", "-A"], ["commit", "-qm", "It"]):
            subprocess.run([*git, *words], check=True, capture_output=True)
        done = subprocess.run([*git, "rev-parse", "HEAD"], check=True, capture_output=True, text=True)
        return done.stdout.strip()

    subprocess.run([*git, "init", "-q"], check=True, capture_output=True)
    write(small, f"{KERNELS}/one/user.py", "from course_kernels.one import k01_first\n")
    user, late = f"{KERNELS}/one/user.py", "2999-01-01T00:00:00+00:00"
    first, ran = commit(), {user: file_digest(small, user)}
    renamed(small, f"{KERNELS}/one/k01_first.py", f"{KERNELS}/one/k01_b.py", ("k01_first", "k01_b"))
    write(small, user, "from course_kernels.one import k01_b\n")
    second = commit()
    assert file_digest(small, user) == ran[user]
    for named in (first, second, "0" * 40):  # the last is lost, and its files are those of today
        assert record_checks.doubt_of_commit(small, named, late, ran) == ""
    renamed(small, user, f"{KERNELS}/one/it.py", ("", ""))
    commit()
    assert record_checks.doubt_of_commit(small, "0" * 40, late, ran) == ""
    assert "user.py is not as it ran" in record_checks.doubt_of_commit(small, second, late, {user: "0"})


# --- the repository -----------------------------------------------------------------------------------

# A kernel's helper, a file of the harness, a folder with the function that it gives its name to.
MOVES = {
    f"{KERNELS}/gemm/launch_cache.py": f"{KERNELS}/gemm/launch_caches.py",
    f"{KERNELS}/measure/record_types.py": f"{KERNELS}/measure/record_types_of_pages.py",
    f"{KERNELS}/stall_demos": f"{KERNELS}/stall_demos_of_warps",
}
WORDS = {
    r"\blaunch_cache\b": "launch_caches",
    r"\bmeasure\.record_types\b": "measure.record_types_of_pages",
    r'"record_types"': '"record_types_of_pages"',
    r"\bstall_demos\b": "stall_demos_of_warps",
}


def stale(root):
    """Everything that speaks against a record, of pages and of groups of GPU tests, in both editions."""
    found, project = {}, gpu_test_records.Project(root)
    pages = [
        read_page(path, root) for path in sorted(root.glob("[dh]*o*/**/*.py")) if "handouts" not in path.parts
    ]
    for slug in ("nvidia-h200", "nvidia-h100-80gb-hbm3"):
        measured = [page for page in pages if page.measures]
        for job in plan.jobs(root, measured, slug, [], reference="nvidia-h200", only_stale=True):
            found[slug, job.page.id] = set(job.reasons)
        for group in project.groups:
            path = gpu_test_records.record_path(root, slug, group)
            if path.exists():
                coverage = json.loads(path.read_text(encoding="utf-8"))["coverage"]
                then = project.renames.in_present_names(coverage)
                found[slug, group] = set(gpu_test_records.differences(then, project.coverage(group)))
    return found


def in_words(text):
    for old, new in WORDS.items():
        text = re.sub(old, new, text)
    return text


def test_a_kernels_file_a_file_of_the_harness_and_a_folder_renamed_make_nothing_stale(tmp_path):
    before = stale(ROOT)
    for folder in ("src", "docs", "handbook", "labs", "records", "tests", "proposals"):
        leave = shutil.ignore_patterns("__pycache__", "*.svg")
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=leave)
    file = tmp_path / "records/renames.toml"
    entries = "".join(f'"{old}" = "{new}"\n' for old, new in MOVES.items())
    file.write_text(file.read_text() + entries)
    for old, new in MOVES.items():
        (tmp_path / old).rename(tmp_path / new)
    touched = 0
    for path in tmp_path.glob("[sdt]*/**/*.py"):
        text = path.read_text()
        if in_words(text) != text:
            touched += 1
            path.write_text(in_words(text))
    assert touched > 20
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(includes, "SHARED", tmp_path / KERNELS / "cuda")  # as if it ran from the copy
        after = stale(tmp_path)
        assert after == {
            (slug, in_words(name)): {in_words(why) for why in reasons}
            for (slug, name), reasons in before.items()
        }
        first, second = f"{KERNELS}/gemm/launch_caches.py", f"{KERNELS}/stall_demos_of_warps/problem.py"
        (tmp_path / first).write_text((tmp_path / first).read_text() + "MORE = 1\n")
        (tmp_path / second).write_text((tmp_path / second).read_text().replace("1024", "512", 1))
        worse = {key: reasons - after.get(key, set()) for key, reasons in stale(tmp_path).items()}
    assert worse["nvidia-h200", "stall_demos_of_warps"] == {f"{second} changed"}
    assert worse["nvidia-h100-80gb-hbm3", "stalls"] == {f"{second} changed"}
    assert worse["nvidia-h100-80gb-hbm3", "gemm"] == {f"{first} changed"}
    assert set().union(*worse.values()) == {f"{first} changed", f"{second} changed"}
