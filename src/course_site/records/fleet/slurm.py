"""SLURM: jobs that start workers, from a file such as fleet.toml; what would be submitted can be read first.

address = "tls://login1:8786"   # where the coordinator listens; the jobs must reach it
tls = "certificates"            # folder with ca.pem, cert.pem, key.pem, which the jobs can read
jobs = 4                        # how many to submit
gpus = 8                        # of each
cores = 64
memory = "256 GB"
walltime = "04:00:00"           # and, where your site asks for them: queue, account, log_directory
directives = ["--gres=gpu:8", "--exclusive"]
prologue = ["module load python/3.12"]
python = ".nox/worker/bin/python"
wait_minutes = 60               # for the first job to begin
"""

from __future__ import annotations

import contextlib
import difflib
import shlex
import shutil
import tomllib
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from course_site.records.fleet.address import Address, read_address
from course_site.records.fleet.settings import WAIT_S, of_a_scheduler
from course_site.records.plan import CannotStart

NEEDED = {"address": str, "jobs": int, "gpus": int, "cores": int, "memory": str, "walltime": str}
OTHER = {
    "tls": str, "queue": str, "account": str, "log_directory": str, "directives": list, "prologue": list, "python": str,
    "wait_minutes": (int, float),
}  # fmt: skip


@dataclass(frozen=True)
class SlurmFile:
    """Request to SLURM; see the head of this module."""

    address: Address
    jobs: int
    gpus: int
    wait_s: float
    options: dict[str, Any]  # of dask_jobqueue.SLURMCluster

    def script(self) -> str:
        """Return the script of one job, as it would be submitted."""
        from dask_jobqueue.slurm import SLURMJob

        job = SLURMJob(
            scheduler=str(self.address),
            name="course",
            security=self.address.security(),
            protocol=f"{self.address.protocol}://",
            **self.options,
        )
        return str(job.job_script())


def read_slurm_file(path: Path, root: Path) -> SlurmFile:
    """Read a file such as fleet.toml.

    Raises:
        CannotStart: it cannot be read, or a key is unknown, missing or of the wrong type; one line.
    """
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise CannotStart(f"--slurm {path}: {error.strerror}") from None
    except ValueError as error:
        raise CannotStart(f"--slurm {path}: is not TOML: {error}") from None
    known: dict[str, Any] = NEEDED | OTHER
    for key, value in data.items():
        if key not in known:
            near = difflib.get_close_matches(key, known, n=1, cutoff=0.0)[0]
            raise CannotStart(f"--slurm {path}: {key} is unknown; did you mean {near}?")
        if not isinstance(value, known[key]) or isinstance(value, bool):
            raise CannotStart(f"--slurm {path}: {key} = {value!r}: {_kind(known[key])} is wanted")
    if missing := [key for key in NEEDED if key not in data]:
        raise CannotStart(f"--slurm {path}: {missing[0]} is missing")
    for key in ("jobs", "gpus", "cores"):
        if data[key] < 1:
            raise CannotStart(f"--slurm {path}: {key} = {data[key]}: at least 1 is wanted")
    address = read_address(data["address"], (path.parent / data["tls"]).absolute() if "tls" in data else None)
    if address.port == 0:
        raise CannotStart(f"--slurm {path}: address = {address}: a job must know the port")
    wait_s = data.get("wait_minutes", 60) * 60.0
    return SlurmFile(address, data["jobs"], data["gpus"], wait_s, _options(data, root, address))


def _kind(kinds: Any) -> str:
    names = {str: "a text", int: "a whole number", list: "a list of texts"}
    return names.get(kinds, "a number")


def _options(data: dict[str, Any], root: Path, address: Address) -> dict[str, Any]:
    """Return what dask_jobqueue calls it: one process a job, which starts a worker for each GPU."""
    python = data.get("python", "")
    source = shlex.quote(str(root / "src"))
    return {
        "cores": data["cores"],
        "memory": data["memory"],
        "walltime": data["walltime"],
        "queue": data.get("queue"),
        "account": data.get("account"),
        "log_directory": data.get(
            "log_directory", str(root / ".cache" / "slurm")
        ),  # in the tree it would be a change
        "processes": 1,
        "python": shlex.quote(str(root / python)) if python else None,
        "worker_command": "course_site worker",
        "death_timeout": WAIT_S,
        "worker_extra_args": [
            *("--gpus", str(data["gpus"])),
            *(("--tls", shlex.quote(str(address.tls))) if address.tls else ()),
        ],
        "job_extra_directives": data.get("directives", []),
        "job_script_prologue": [
            *data.get("prologue", []),
            f"cd {shlex.quote(str(root))}",
            f'export PYTHONPATH={source}"${{PYTHONPATH:+:$PYTHONPATH}}"',
        ],
        "job_name": "course-fleet",
    }


@contextlib.asynccontextmanager
async def start_cluster(file: SlurmFile, root: Path) -> AsyncIterator[Any]:
    """Start Dask's scheduler here and submit the jobs; those that still run in the end are cancelled.

    Raises:
        CannotStart: there is no sbatch, or it refuses; one line.
    """
    if shutil.which("sbatch") is None:
        raise CannotStart("--slurm: there is no sbatch on PATH: run this where jobs are submitted")
    from dask_jobqueue import SLURMCluster

    security = file.address.security()
    cluster = SLURMCluster(
        asynchronous=True,
        security=security,
        protocol=f"{file.address.protocol}://",
        scheduler_options={
            "host": file.address.host.strip("[]"),
            "port": file.address.port,
            **of_a_scheduler(),
        },
        **file.options,
    )
    try:
        await cluster
        cluster.scale(jobs=file.jobs)
        await cluster
    except (RuntimeError, ValueError, OSError) as error:
        await cluster.close()
        said = [line for line in str(error).splitlines() if line.strip()]
        raise CannotStart(f"--slurm: the jobs cannot be submitted: {said[-1] if said else error}") from None
    try:
        yield cluster
    finally:
        await cluster.close()
