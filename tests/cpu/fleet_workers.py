"""Workers whose cards are made up and whose pages take no kernel: as many as are asked for, in processes of one import.

`python fleet_workers.py ADDRESS COUNT [WAIT_S]` in a tree; COURSE_FAKE_GPUS says which cards there are, and on which
host each. What a page's first cell says happens: `sleep=0.1` takes so long, `die=2` ends the worker the first two
times, `half` sends half of the parcel. Every run is written down in ../ran beside the tree, with its card and its time.
A worker that is killed is started again, once it is noticed.
"""

import asyncio
import contextlib
import dataclasses
import functools
import json
import os
import re
import signal
import sys
import time
import uuid
from pathlib import Path

from test_record import output, quantity

from course_site.records import renames
from course_site.records.execute import fake_provenance
from course_site.records.fleet import serve, tasks
from course_site.records.fleet.address import read_address
from course_site.records.fleet.parcel import Parcel
from course_site.records.fleet.processes import end_with_parent
from course_site.records.fleet.statement import statement
from course_site.records.gpu_test_records import Project, record_path
from course_site.records.gpus import find_gpus
from course_site.records.record import build_record, edition_of, seal

ROOT = Path.cwd()


@functools.cache
def project():
    return Project(ROOT)


def asked(text, word):
    found = re.search(rf"\b{word}=([\d.]+)", text)
    return float(found[1]) if found else 0.0


def die_if_asked(name, text):
    """Leave a mark for each death, so that the next worker knows."""
    for turn in range(int(asked(text, "die"))):
        with contextlib.suppress(FileExistsError):
            (ROOT.parent / f"died-{name}-{turn}").touch(exist_ok=False)
            os.kill(os.getpid(), signal.SIGKILL)


@contextlib.contextmanager
def written_down(name, visible):
    began = time.time()
    (ROOT.parent / f"began-{name}").write_text(str(os.getpid()))
    try:
        yield
    finally:
        line = f"{name} {HOST} {visible} {began} {time.time()} {os.getpid()}\n"
        file = os.open(ROOT.parent / "ran", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        os.write(file, line.encode())
        os.close(file)


async def measure_page(root, page, gpu):
    text = page.code[0].source
    with written_down(page.id, gpu.visible):
        await asyncio.sleep(asked(text, "sleep"))
        die_if_asked(page.id, text)
    if "half" in text:
        whole = Parcel.pack
        Parcel.pack = lambda self: setattr(Parcel, "pack", whole) or whole(self)[:-20]
    provenance = {**fake_provenance(gpu), "commit": ONE.tree.commit, "dirty": False}
    outputs = [[output(**{page.id: quantity(1.0)})]]
    return build_record(page, outputs, [0.5], {}, provenance, {f"{page.id}.bin": b"x" * 1000}, renames.NONE)


async def run_pytest(root, group, environment):
    with written_down(group, environment["CUDA_VISIBLE_DEVICES"]):
        await asyncio.sleep(0.02)
    gpu = GPUS[0]
    provenance = {**fake_provenance(gpu), "commit": ONE.tree.commit, "dirty": False}
    data = {
        "kind": "tests",
        "group": group,
        "passed": 1,
        "failed": 0,
        "tests": [{"id": "a", "outcome": "passed", "seconds": 0.1}],
        "provenance": provenance,
        "edition": edition_of(provenance),
        "coverage": project().coverage(group),
    }
    path = record_path(root, gpu.slug, group).relative_to(root / "records")
    file = Path(environment["COURSE_RECORDS"]) / path
    file.parent.mkdir(parents=True)
    file.write_text(json.dumps(seal(data)))
    return 0, "1 passed"


def begin(gpu, address, wait_s):
    """Fork a worker for a card; its process id."""
    global HOST, ONE
    pid = os.fork()
    if pid:
        return pid
    end_with_parent()
    HOST = MADE_UP[gpu.index].get("host", "here")
    mine = [other for other in GPUS if MADE_UP[other.index].get("host", "here") == HOST]
    name = f"{HOST} GPU {gpu.index}"
    ONE = dataclasses.replace(ONE, worker=name, process=uuid.uuid4().hex, host=HOST, stand=HOST, gpu=gpu)
    code = asyncio.run(serve.serve_as(ROOT, address, mine, ONE, wait_s))
    os._exit(code)


if __name__ == "__main__":
    address = read_address(sys.argv[1], None)
    count, wait_s = int(sys.argv[2]), float((sys.argv[3:] or [30])[0])
    tasks.measure_page, tasks.run_pytest = measure_page, run_pytest
    tasks.gpu_test_records.Project = lambda root: project()
    MADE_UP = json.loads(os.environ["COURSE_FAKE_GPUS"])
    GPUS = find_gpus()[:count]
    ONE = statement(ROOT, GPUS[0], "", "")
    running = {begin(gpu, address, wait_s): gpu for gpu in GPUS}
    codes = []
    while running:
        (ROOT.parent / "pids.part").write_text(" ".join(map(str, running)))
        (ROOT.parent / "pids.part").rename(ROOT.parent / "pids")
        pid, status = os.wait()
        gpu = running.pop(pid)
        if os.WIFSIGNALED(status):
            running[begin(gpu, address, wait_s)] = gpu
        else:
            codes.append(os.WEXITSTATUS(status))
    sys.exit(max(codes))
