"""How workers are started: by the command on this machine, by hand through TLS, by SLURM; and what a kill leaves."""

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from fleet_of_stand_ins import environment, free_address, records, wait_until
from tiny_repository import H200, commit_all, make_repository, recording, write, write_page

from course_site import docs
from course_site.records.fleet import opening, worker
from course_site.records.record import Record

WHERE = "import os\nfrom pathlib import Path\nhere = Path({folder!r})\n"
# The first time it writes down who runs it, and sleeps; the second time it is quick.
KILLED_ONCE = WHERE + (
    "first = here / 'first'\n"
    "if not first.exists():\n"
    "    import time\n"
    "    (here / 'writing').write_text(f\"{{os.getpid()}} {{os.getppid()}}\")\n"
    "    (here / 'writing').rename(first)\n"
    "    time.sleep(60)\n"
)


@pytest.fixture
def root(tmp_path, monkeypatch):
    root = make_repository(tmp_path, monkeypatch, (H200, H200))
    monkeypatch.setenv("PYTHONPATH", environment()["PYTHONPATH"])
    monkeypatch.setattr(opening, "SETTLED_S", 0.3)
    return root


def test_a_worker_killed_in_the_middle_leaves_its_page_to_another(root, tmp_path, capfd):
    write_page(root, "a", KILLED_ONCE.format(folder=str(tmp_path)), recording("a"))
    write_page(root, "b", recording("b"))
    seen = {}

    def kill():
        wait_until((tmp_path / "first").exists)
        page, of = map(int, (tmp_path / "first").read_text().split())
        seen["page"] = page
        os.kill(of, signal.SIGKILL)

    threading.Thread(target=kill, daemon=True).start()
    assert docs.main(["--measure-only", "--jobs", "2"], root) == 0
    said = capfd.readouterr().out
    assert [path.name for path in records(root)] == ["a.ipynb", "b.ipynb"]
    assert Record.load(records(root)[0]).names["a"]["value"] == 1
    assert "died while it ran" in said
    assert "its worker was ended by SIGKILL: started again" in said
    assert said.count("measured docs/a.py on ") == 1
    assert not [path for path in (root / "records").rglob("*") if path.name.startswith(".")]
    assert not Path(f"/proc/{seen['page']}").exists()  # what it left running would have kept the card


def test_ctrl_c_ends_every_process_of_a_fleet(root, tmp_path):
    write_page(root, "a", KILLED_ONCE.format(folder=str(tmp_path)))
    process = subprocess.Popen(
        [sys.executable, "-m", "course_site", "docs", "--measure-only", "--jobs", "2"],
        cwd=root,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    wait_until((tmp_path / "first").exists)
    pids = (tmp_path / "first").read_text().split()
    os.killpg(process.pid, signal.SIGINT)
    out, _ = process.communicate(timeout=30)
    assert process.returncode == 130, out
    assert "docs: stopped; 0 finished records kept, site/ is as it was" in out
    assert "Traceback" not in out
    wait_until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in pids), 10)


def test_a_coordinator_that_is_killed_leaves_no_worker_of_its_own(root, tmp_path):
    write_page(root, "a", KILLED_ONCE.format(folder=str(tmp_path)))
    process = subprocess.Popen(
        [sys.executable, "-m", "course_site", "docs", "--measure-only", "--jobs", "2"],
        cwd=root,
        env=environment(),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.STDOUT,
    )
    wait_until((tmp_path / "first").exists)
    pids = (tmp_path / "first").read_text().split()
    process.kill()
    process.wait()
    wait_until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in pids), 20)


def test_a_run_of_gpu_tests_on_a_fleet_says_what_failed(root, monkeypatch, capfd):
    conftest = "def pytest_addoption(parser):\n    parser.addoption('--group', action='append', default=[])\n"
    write(root, "tests/gpu/conftest.py", conftest)
    write(
        root, "tests/gpu/test_it.py", 'GROUPS = ("it",)\ndef test_planted():\n    assert False, "planted"\n'
    )
    write_page(root, "a", recording("a"))
    assert docs.main(["--measure-only", "--tests", "--jobs", "2"], root) == 1
    found = capfd.readouterr()
    assert "AssertionError: planted" in found.out
    assert "tests/gpu/it: pytest ended with 1 on " in found.err
    assert found.out.index("measured docs/a.py") < found.out.index("begun tests/gpu/it")


# --- by hand ----------------------------------------------------------------------------------------


def certificates(folder):
    folder.mkdir()
    words = "req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=fleet -keyout key.pem -out cert.pem"
    subprocess.run(["openssl", *words.split()], cwd=folder, check=True, capture_output=True)
    (folder / "ca.pem").write_bytes((folder / "cert.pem").read_bytes())
    return folder


def start_worker(root, address, *options):
    return subprocess.Popen(
        [sys.executable, "-m", "course_site", "worker", address, *options],
        cwd=root,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )


def committed(root):
    write(root, ".gitignore", ".cache/\n__pycache__/\n")
    commit_all(root)


def test_a_worker_through_tls_and_none_with_another_certificate(root, tmp_path, capsys):
    write_page(root, "a", recording("a"))
    committed(root)
    ours, theirs = certificates(tmp_path / "ours"), certificates(tmp_path / "theirs")
    address = free_address().replace("tcp", "tls")
    stranger = start_worker(root, address, "--tls", str(theirs), "--gpus", "1", "--wait", "3")
    good = start_worker(root, address, "--tls", str(ours), "--gpus", "1")
    try:
        options = ("--measure-only", "--scheduler", address, "--tls", str(ours))
        assert docs.main(options, root) == 0
        assert good.wait(20) == 0
        said = capsys.readouterr().out
        assert said.count(" is here: ") == 1
        assert "measured docs/a.py on " in said
    finally:
        for process in (stranger, good):
            process.terminate()
            process.wait(20)


@pytest.mark.parametrize(
    ("arguments", "gpus", "said"),
    [
        (["tcp://10.0.0.1:1"], [H200], "worker: tcp://10.0.0.1:1: is neither loopback nor tls://"),
        (["tcp://127.0.0.1:1"], [], "worker: there is no GPU here: a worker has one"),
        (["tcp://127.0.0.1:1", "--wait", "0"], [H200], "no coordinator at tcp://127.0.0.1:1 for 0 s"),
    ],
)
def test_a_worker_that_cannot_start_says_why(root, arguments, gpus, said):
    environ = environment() | {"COURSE_FAKE_GPUS": json.dumps(gpus)}
    done = subprocess.run(
        [sys.executable, "-m", "course_site", "worker", *arguments],
        cwd=root, env=environ, capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert done.returncode in (2, 3)
    assert said in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_without_dask_one_line_says_what_to_install(root, monkeypatch, capsys):
    is_there = docs._is_there
    monkeypatch.setattr(docs, "_is_there", lambda module: module != "distributed" and is_there(module))
    write_page(root, "a", "1")
    assert docs.main(["--measure-only", "--jobs", "2"], root) == 2
    err = capsys.readouterr().err
    assert err.startswith("docs: missing packages: distributed: `pip install distributed` with a network; ")
    assert err.count("\n") == 1
    assert docs.main(["--measure-only"], root) == 0  # one after the other needs no Dask
    monkeypatch.setitem(sys.modules, "distributed", None)
    assert worker.main(["tcp://127.0.0.1:1"], root) == 2
    assert capsys.readouterr().err == "worker: missing packages: distributed: `pip install distributed`\n"


# --- SLURM ------------------------------------------------------------------------------------------

FLEET = """
address = "{address}"
jobs = 2
gpus = 1
cores = 16
memory = "64 GB"
walltime = "01:30:00"
queue = "gpu"
account = "course"
directives = ["--gres=gpu:1", "--exclusive"]
prologue = ["module load python/3.12"]
python = "{python}"
"""
SBATCH = """#!/bin/sh
# The stand-in of a cluster: the job runs here, and its script is kept. Each job has a card of its own.
number=0
until mkdir "$KEPT/../turn-$number" 2>/dev/null; do number=$((number + 1)); done
cp "$1" "$KEPT/job-$number.sh"
CUDA_VISIBLE_DEVICES=$number setsid sh "$KEPT/job-$number.sh" >"$KEPT/../said-$number" 2>&1 </dev/null &
echo "Submitted batch job $!"
"""
SCANCEL = '#!/bin/sh\nkill -TERM -- "-$1" 2>/dev/null\nexit 0\n'


@pytest.fixture
def cluster(tmp_path, monkeypatch):
    """sbatch and scancel that run a job on this machine; the folder of scripts that were submitted."""
    for name, text in (("sbatch", SBATCH), ("scancel", SCANCEL), ("module", "#!/bin/sh\n")):
        write(tmp_path / "bin", name, text).chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"), prepend=os.pathsep)
    kept = tmp_path / "kept"
    kept.mkdir()
    monkeypatch.setenv("KEPT", str(kept))
    return kept


def test_slurm_starts_the_workers_and_the_script_can_be_read_first(
    root, tmp_path, cluster, capfd, monkeypatch
):
    for name in "abc":
        write_page(root, name, recording(name))
    committed(root)
    address = free_address()
    file = write(tmp_path, "fleet.toml", FLEET.format(address=address, python=sys.executable))
    assert docs.main(["--plan", "--slurm", str(file)], root) == 0
    said = capfd.readouterr().out
    lines = said.splitlines()
    assert lines[0] == "script of each of 2 jobs:"
    for line in (
        "#SBATCH -J course-fleet", "#SBATCH -p gpu", "#SBATCH -A course", "#SBATCH -n 1", "#SBATCH --cpus-per-task=16",
        "#SBATCH --mem=60G", "#SBATCH -t 01:30:00", "#SBATCH --gres=gpu:1", "#SBATCH --exclusive",
        "module load python/3.12", f"cd {root}", f"#SBATCH -o {root}/.cache/slurm/course-fleet-%J.out",
    ):  # fmt: skip
        assert line in lines
    command = f"{sys.executable} -m course_site worker {address} --name course --nthreads 16 --memory-limit 59.60GiB"
    assert command in said
    assert "--gpus 1" in said
    assert list(cluster.iterdir()) == []
    assert docs.main(["--measure-only", "--slurm", str(file)], root) == 0
    assert [path.name for path in records(root)] == ["a.ipynb", "b.ipynb", "c.ipynb"]
    assert len(list(cluster.iterdir())) == 2
    assert "is here: NVIDIA H200" in capfd.readouterr().out


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("jobs = 2", "job = 2"), "job is unknown; did you mean jobs?"),
        (("jobs = 2", 'jobs = "2"'), "jobs = '2': a whole number is wanted"),
        (("jobs = 2", "jobs = 0"), "jobs = 0: at least 1 is wanted"),
        (("cores = 16", ""), "cores is missing"),
        (("directives = [", "directives = '"), "is not TOML: "),
        (("tcp://127.0.0.1:1", "tcp://login1:1"), "tcp://login1:1: is neither loopback nor tls://"),
        (("tcp://127.0.0.1:1", "tls://login1:1"), "tls://login1:1: needs --tls FOLDER"),
    ],
)
def test_a_file_for_slurm_that_is_wrong_is_one_line(root, tmp_path, capsys, change, said):
    text = FLEET.format(address="tcp://127.0.0.1:1", python="p").replace(*change)
    file = write(tmp_path, "fleet.toml", text)
    assert docs.main(["--slurm", str(file)], root) == 2
    err = capsys.readouterr().err
    assert said in err
    assert err.count("\n") == 1


def test_a_cluster_that_refuses_is_one_line(root, tmp_path, monkeypatch, cluster, capsys):
    write_page(root, "a", "1")
    committed(root)
    file = write(tmp_path, "fleet.toml", FLEET.format(address=free_address(), python="p"))
    write(
        tmp_path / "bin",
        "sbatch",
        "#!/bin/sh\necho 'sbatch: error: invalid partition specified: gpu' >&2\nexit 1\n",
    )
    assert docs.main(["--measure-only", "--slurm", str(file)], root) == 2
    said = "docs: --slurm: the jobs cannot be submitted: sbatch: error: invalid partition specified: gpu\n"
    assert capsys.readouterr().err == said
    git = shutil.which("git")
    (tmp_path / "nothing").mkdir()
    (tmp_path / "nothing/git").symlink_to(git)
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
    assert docs.main(["--measure-only", "--slurm", str(file)], root) == 2
    said = "docs: --slurm: there is no sbatch on PATH: run this where jobs are submitted\n"
    assert capsys.readouterr().err.endswith(said)
