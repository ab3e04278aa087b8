"""The capstone on the card: an entry is run, checked, put on the board of this card, and certified."""

import json
import re
import shutil
from pathlib import Path

import pytest
import torch

from course_capstone.__main__ import main
from course_capstone.entry import examine
from course_capstone.tasks import read_tasks
from course_kernels.measure.machine import machine_for

GROUPS = ("capstone",)
ALONE = True  # it looks at time

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """An example that ran on this card."""
    found = tmp_path_factory.mktemp("board") / "entry"
    shutil.copytree(ROOT / "capstone/examples/explained_loss", found)
    entry = found / "entry.toml"
    card = torch.cuda.get_device_name()
    entry.write_text(
        re.sub("(?m)^card = .*", f'card = "{card}"', entry.read_text(encoding="utf-8")), encoding="utf-8"
    )
    main(["--run", "--gpu", "--seconds", "60", str(found)], ROOT)
    return found


def test_an_entry_runs_is_timed_and_certified(folder, capsys):
    card = torch.cuda.get_device_name()
    outcome, faults = examine(folder, ROOT, read_tasks(), card)
    told = json.loads((folder / "run.json").read_text(encoding="utf-8"))
    # A tree with changes is refused, and for nothing else.
    assert [line.split(":")[0] for line in faults] == ["dirty tree"] * bool(
        told["provenance"]["dirty"] is not False
    )
    assert told["verdict"]["evidence"]["on"] == f"on {card}"
    assert told["verdict"]["found"] == "right", told["verdict"]["why"]
    assert told["profile"]["reading"]["time_us"] > 0
    if outcome is None:
        return
    if machine_for(card):
        assert 0 < outcome.of_peak < 1
    assert main(["--board", str(folder.parent), "--card", card], ROOT) == 0
    assert main(["--certificate", str(folder)], ROOT) == 0
    if machine_for(card):
        assert f"{outcome.of_peak:.1%} of peak" in (folder / "certificate.svg").read_text(encoding="utf-8")


def test_an_edited_time_is_refused_here_too(folder):
    told = json.loads((folder / "run.json").read_text(encoding="utf-8"))
    forged = folder.parent / "forged"
    shutil.copytree(folder, forged)
    told["profile"]["reading"]["time_us"] /= 2
    (forged / "run.json").write_text(json.dumps(told), encoding="utf-8")

    _, faults = examine(forged, ROOT, read_tasks())
    shutil.rmtree(forged)

    assert [line.split(":")[0] for line in faults] == ["edited"]
