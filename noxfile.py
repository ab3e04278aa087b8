"""The only door: `nox -s docs` builds the site, `nox -s tests` tests, `nox -l` lists the rest."""

import hashlib
import logging
import os
import shutil
import subprocess
import sys
from pathlib import Path

import nox

ROOT = Path(__file__).parent
sys.path.insert(0, str(ROOT / "src"))

from course_classroom.__main__ import class_needs  # noqa: E402
from course_classroom.rules import hand_out  # noqa: E402
from course_labs.__main__ import grading_needs  # noqa: E402
from course_site.records.gpus import GpuUnusable, find_gpus  # noqa: E402

nox.needs_version = ">=2024.4.15"
nox.options.sessions = ["docs"]
nox.options.reuse_existing_virtualenvs = True
nox.options.error_on_external_run = False
# nox looks for uv whatever the backend, and says so when there is none: no reader's first line should be that.
logging.getLogger("nox").addFilter(lambda record: record.getMessage() != "uv binary not found.")

# torch and triton that pair up, and the last triton whose interpreter is right where the tests use it.
PINNED = ("torch==2.13.0", "triton==3.7.1")
# What tests/cpu/compiled.json and tests/cpu/verdicts.json were made with: a new wheel would make all of both worthless
# overnight, and every run of the tests a quarter of an hour longer. Whoever moves a version writes both files anew.
FACTS_MADE_WITH = (
    "numpy==2.4.6",
    "cuda-bindings==13.5.0",
    "cuda-core==1.2.2",
    "cuda-pathfinder==1.9.1",
    "cuda-toolkit==13.5.0",
    "nvidia-cuda-crt==13.5.37",
    "nvidia-cuda-nvdisasm==13.5.37",
    "nvidia-cuda-nvrtc==13.5.37",
    "nvidia-cuda-runtime==13.5.37",
)
CHROMIUM = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


def has_gpu(session: nox.Session) -> bool:
    """Return True with a usable GPU; a driver that is there and fails ends the session with one line."""
    try:
        return bool(find_gpus())
    except GpuUnusable as error:
        session.error(str(error))


def install(session: nox.Session, extras: str, *pinned: str) -> None:
    """Install this project with extras, once per pyproject.toml; with --no-venv use what is there.

    Without extras what is pinned is all that is installed: the project itself is found where it lies.
    """
    session.env["PYTHONPATH"] = os.pathsep.join(
        part for part in (str(ROOT / "src"), os.environ.get("PYTHONPATH", "")) if part
    )
    session.env["NO_MKDOCS_2_WARNING"] = "1"
    session.env["JUPYTER_PLATFORM_DIRS"] = "1"
    packages = [*pinned, *(["-e", f".[{extras}]"] if extras else [])]
    if is_passthrough(session) or not packages:
        return
    wanted = repr((extras, pinned, sys.version_info[:2])).encode() + (ROOT / "pyproject.toml").read_bytes()
    stamp = Path(session.virtualenv.location) / f"installed-{hashlib.sha256(wanted).hexdigest()[:16]}"
    if not stamp.exists():
        # One call: a resolver that sees the pins never takes another torch first. Python compiles what it imports,
        # and most of what is installed it never does: a third of the wait.
        session.install("--no-compile", *packages)
        stamp.touch()


def is_passthrough(session: nox.Session) -> bool:
    """Return True under --no-venv: the Python that runs nox is the one to use."""
    return isinstance(session.virtualenv, nox.virtualenv.PassthroughEnv)


def python(session: nox.Session, *arguments: str, **keywords: object) -> None:
    """Run this session's Python."""
    session.run(sys.executable if is_passthrough(session) else "python", *arguments, **keywords)


def run_to_its_end(session: nox.Session, *arguments: str) -> None:
    """Run this session's Python and hand on its exit code: 3 is "out of minutes", 130 is Ctrl-C.

    nox itself would answer 1 to all of them, and end a program 0.3 s after Ctrl-C.
    """
    interpreter = sys.executable if is_passthrough(session) else shutil.which("python", path=session.bin)
    # nox unsets a variable whose value is None.
    environment = {name: value for name, value in (os.environ | session.env).items() if value is not None}
    encoding = environment.get("PYTHONIOENCODING", "")
    if ":" not in encoding:  # a terminal of an old encoding shows a question mark for what it lacks
        environment["PYTHONIOENCODING"] = f"{encoding}:replace"
    process = subprocess.Popen([interpreter, *arguments], env=environment)
    while True:
        try:
            code = process.wait()
            break
        except KeyboardInterrupt:
            continue  # it got the same signal, and is keeping its finished records
    if code == 1 and session.name not in (
        "grade",
        "classroom",
        "judge",
        "profile",
        "submit",
        "serve-model",
    ):  # a refusal has said all there is to say
        session.error("failed, see above")
    if code:
        sys.exit(code)


@nox.session
def docs(session: nox.Session) -> None:
    """Build site/; with a GPU measure every page first. Options after --, see -- --help."""
    several = any(word.startswith(("--jobs", "--scheduler", "--slurm")) for word in session.posargs)
    extras = ["site", *(["measure", "cuda13"] if has_gpu(session) else []), *(["fleet"] if several else [])]
    extras += [
        extra for word, extra in zip(session.posargs, session.posargs[1:], strict=False) if word == "--with"
    ]
    install(session, ",".join(extras))
    # A compiled file says nothing that its source does not say.
    compiled = ("--check-hash-based-pycs", "always")
    run_to_its_end(session, *compiled, "-m", "course_site", "docs", *session.posargs)


@nox.session
def worker(session: nox.Session) -> None:
    """Measure on this machine's GPUs for `nox -s docs -- --scheduler ADDRESS` elsewhere: `-- ADDRESS`."""
    if not has_gpu(session):
        session.error("there is no GPU here: a worker has one")
    install(session, "measure,cuda13,tests,fleet")  # groups of GPU tests are run here too
    run_to_its_end(session, "-m", "course_site", "worker", *session.posargs)


@nox.session
def chips(session: nox.Session) -> None:
    """Compile our kernels for chips that are not here, into records/chips/: `-- NAME ...`, `-- --list`."""
    install(session, "chips")
    run_to_its_end(session, "-m", "course_chips", *session.posargs)


@nox.session
def serve(session: nox.Session) -> None:
    """Show the site on http://127.0.0.1:8000 and reload it after every edit."""
    install(session, "site")
    python(session, "-m", "mkdocs", "serve", "--livereload", *session.posargs)


@nox.session
def read(session: nox.Session) -> None:
    """Read what nobody has read since it changed, beside what it prints: `-- FILE ...` only there."""
    install(session, "site")
    run_to_its_end(session, "-m", "course_site", "read", *session.posargs)


@nox.session
def tests(session: nox.Session) -> None:
    """Pass the tests that need no GPU; with a GPU those that need one too."""
    install(session, "site,measure,cuda13,tests", *PINNED, *FACTS_MADE_WITH)
    # A file stays in one process: what its tests share is made once. One process more than cores, as some tests wait
    # for a clock or for a process of their own; beyond nine they mostly import PyTorch.
    processes = str(min(os.cpu_count() or 1, 8) + 1)
    on_all_cores = ["tests/cpu", "-n", processes, "--dist", "loadfile", "--no-loadscope-reorder"]
    # Options alone, such as --anew, are for all tests.
    all_of_it = all(word.startswith("-") for word in session.posargs)
    python(session, "-m", "pytest", *(on_all_cores if all_of_it else []), *session.posargs)
    if not session.posargs and (ROOT / "tests" / "gpu").exists() and has_gpu(session):
        python(session, "-m", "pytest", "tests/gpu")


@nox.session(venv_backend="none")
def lab(session: nox.Session) -> None:
    """List the labs; `-- NAME` writes one into my_labs/, `--stage K` the file after a stage. Needs no install."""
    session.env["PYTHONPATH"] = str(ROOT / "src")
    run_to_its_end(session, "-m", "course_labs", "lab", *session.posargs)
    hand_out(ROOT)


@nox.session
def grade(session: nox.Session) -> None:
    """Check your file of a lab: `-- NAME [FILE]`; on a GPU it is timed too. A class: `-- --all FOLDER --roster CSV`."""
    gpu = has_gpu(session)
    whole_class = any(word == "--all" or word.startswith("--all=") for word in session.posargs)
    needs = class_needs(session.posargs) if whole_class else grading_needs(session.posargs)
    if needs == "torch":
        install(session, "measure,cuda13", *(() if gpu else PINNED))
    else:
        install(session, "", *filter(None, [needs]))
    package = "course_classroom" if whole_class else "course_labs"
    run_to_its_end(session, "-m", package, "grade", *(["--gpu"] if gpu else []), *session.posargs)


@nox.session(venv_backend="none")
def classroom(session: nox.Session) -> None:
    """Write templates and autograders for Classroom 50: `-- --labs first_kernel,transpose`. Needs no install."""
    session.env["PYTHONPATH"] = str(ROOT / "src")
    run_to_its_end(session, "-m", "course_classroom", "classroom", *session.posargs)


@nox.session
def judge(session: nox.Session) -> None:
    """Judge a stranger's kernel: `-- FILE --problem NAME`. In a process of its own, by the judge's own clock."""
    gpu = has_gpu(session)
    install(session, "measure,cuda13", *(() if gpu else PINNED))
    run_to_its_end(session, "-m", "course_judge", *(["--gpu"] if gpu else []), *session.posargs)


@nox.session
def profile(session: nox.Session) -> None:
    """Say what your kernel waits for: `-- FILE[:function]`, `--hint`, `--report`; `--code` shows its machine code."""
    gpu = has_gpu(session)
    install(session, "measure,cuda13", *(() if gpu else PINNED))
    command = "course_profile.code" if "--code" in session.posargs else "course_profile"
    run_to_its_end(session, "-m", command, *(["--gpu"] if gpu else []), *session.posargs)


@nox.session
def harness(session: nox.Session) -> None:
    """Let a machine write a kernel, judge it, tell it, and again: `-- TASK`; `--attack TASK`, `--list`, `--table`."""
    gpu = has_gpu(session)
    install(session, "measure,cuda13", *(() if gpu else PINNED))
    run_to_its_end(session, "-m", "course_harness", *(["--gpu"] if gpu else []), *session.posargs)


@nox.session
def submit(session: nox.Session) -> None:
    """Check an entry of the capstone: `-- FOLDER`, `--tasks`, `--form plan`, `--run`, `--board`, `--certificate`."""
    gpu = has_gpu(session)
    install(session, "measure,cuda13", *(() if gpu else PINNED))
    run_to_its_end(session, "-m", "course_capstone", *(["--gpu"] if gpu else []), *session.posargs)


@nox.session(name="serve-model")
def serve_model(session: nox.Session) -> None:
    """Let the small trained model go on from your text: `-- "Once"`; several are served together."""
    install(session, "measure,cuda13", *(() if has_gpu(session) else PINNED))
    run_to_its_end(session, "-m", "course_models.serving", *session.posargs)


@nox.session
def lint(session: nox.Session) -> None:
    """Check style, format and types, and look for typed performance numbers."""
    install(session, "site,lint")
    python(session, "-m", "ruff", "check", ".")
    python(session, "-m", "ruff", "format", "--check", ".")
    python(session, "-m", "mypy")
    python(session, "-m", "course_site.lint.lint", "docs", "handbook", "labs", "src")


def find_chromium(session: nox.Session) -> None:
    """Put the system's Chromium into the session's environment; without one it ends with one line."""
    named = os.environ.get("CHROMIUM")
    found = [named] if named else [path for path in map(shutil.which, CHROMIUM) if path]
    if not found or not Path(found[0]).exists():
        where = named or ", ".join(CHROMIUM) + " on PATH"
        session.error(
            f"no Chromium (looked for {where}): apt-get install chromium, or set CHROMIUM to its path"
        )
    session.env["CHROMIUM"] = found[0]


@nox.session
def browser(session: nox.Session) -> None:
    """Test the built site in real Chromium; with `--pictures FOLDER [PAGE ...]` take pictures of it instead."""
    find_chromium(session)
    if not (ROOT / "site" / "index.html").exists():
        session.error("there is no site/ to open: run `nox -s docs` first")
    install(session, "site,browser")
    if session.posargs[:1] == ["--pictures"]:
        python(session, "tests/browser/pictures.py", *session.posargs[1:])
    else:
        # A Chromium for each core, and one more for while a page settles: 5 finish before the longest page does, and
        # more would only take memory.
        everything = ["tests/browser", "-n", str(min(os.cpu_count() or 1, 4) + 1)]
        # Options alone, such as --keep, are for all tests.
        all_of_it = all(word.startswith("-") for word in session.posargs)
        python(session, "-m", "pytest", *(everything if all_of_it else []), *session.posargs)


@nox.session
def engines(session: nox.Session) -> None:
    """Build the site by other engines than MkDocs, and say what becomes of it: `-- -k properdocs` for one of them."""
    if not (ROOT / "site" / "index.html").exists():
        session.error("there is no site/ to compare with: run `nox -s docs` first")
    install(session, "site,engines")
    python(session, "-m", "pytest", "tests/engines", "-s", *session.posargs)


@nox.session
def mutants(session: nox.Session) -> None:
    """Plant faults in our own code and see the tests catch them: `-- --seed 1 --count 60`. About half an hour."""
    if not (ROOT / "site" / "index.html").exists():
        session.error("there is no site/ for the tests in the browser: run `nox -s docs` first")
    install(session, "site,measure,cuda13,tests,browser", *PINNED, *FACTS_MADE_WITH)
    run_to_its_end(session, "tests/mutants/plant.py", *(session.posargs or ["--seed", "1", "--count", "60"]))


@nox.session
def calendar(session: nox.Session) -> None:
    """Write a cohort's calendar: `-- --start 2027-01-11 --at 18:00 --zone Europe/Berlin`."""
    install(session, "calendar")
    run_to_its_end(session, "-m", "course_site", "calendar", *session.posargs)


@nox.session
def handouts(session: nox.Session) -> None:
    """Print everything for a session, one PDF each: `-- W4 [--to FOLDER] [--letter]`; all of them if none is named."""
    find_chromium(session)
    install(session, "site,browser")
    run_to_its_end(session, "-m", "course_site", "handouts", *session.posargs)


@nox.session
def publish(session: nox.Session) -> None:
    """Write site/ for any static host: `-- FOLDER`; `-- --check` says what is missing, `-- --try FOLDER` opens it."""
    if "--try" in session.posargs:
        find_chromium(session)
    install(session, "site,browser" if "--try" in session.posargs else "site")
    run_to_its_end(session, "-m", "course_site", "publish", *session.posargs)


@nox.session
def wheelhouse(session: nox.Session) -> None:
    """Collect what a GPU machine without a network lacks. Options after --, see -- --help."""
    if not is_passthrough(session):
        session.install("pip", "packaging")
    session.env["PYTHONPATH"] = str(ROOT / "src")
    python(session, "-m", "course_site", "wheelhouse", *session.posargs)
