"""A process for each card: start them, wait, and hand back what each found.

    from course_kernels.two_cards.together import Case, check, race

A collective takes one process a card. Each is `python -m course_kernels.two_cards`; they meet through a file, so
no network is needed, and whoever fails ends both.
"""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from course_kernels.expert_parallel.layer import Layer

SOURCES = Path(__file__).resolve().parents[2]
CARDS = 2
WAYS = ("replicated", "by_choice", "by_card", "stored", "overlapped")
# One host: the processes talk over its own loopback, and NVLink's multicast, which none of this needs, stays off.
SETTINGS = {
    "NCCL_SOCKET_IFNAME": "lo",
    "GLOO_SOCKET_IFNAME": "lo",
    "NCCL_NVLS_ENABLE": "0",
    "NVSHMEM_DISABLE_NVLS": "1",
    "TORCH_SYMM_MEM_DISABLE_MULTICAST": "1",
}


class CardsFailed(RuntimeError):
    """A process that did not come to its end; the message is one line."""


@dataclass(frozen=True)
class Case:
    """One race, or one check.

    Attributes:
        layer: its sizes.
        T: tokens of each card, one number a card.
        load: which experts they choose, one of `layer.LOADS`.
        ways: which files of expert_parallel/ take part.
        rounds: of a race, in three blocks with tokens of their own.
        seed: draws experts, tokens, and the order of every round.
    """

    layer: Layer
    T: tuple[int, ...]
    load: str = "even"
    ways: tuple[str, ...] = WAYS
    rounds: int = 60
    seed: int = 0

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Case:
        """Return the inverse of `dataclasses.asdict`."""
        layer = Layer(**data["layer"])
        return cls(**{**data, "layer": layer, "T": tuple(data["T"]), "ways": tuple(data["ways"])})


@dataclass(frozen=True)
class Raced:
    """A race, the slower card of each round.

    Attributes:
        us: for every way the microseconds of each round, from the first card's start to the last card's end.
        stages_us: for every way with stages, microseconds of "dispatch", "multiply" and "combine" of each round.
        sent_rows: rows that the busier card sent, by the way that counts so: "by_choice", "by_card".
        errors: for every way the worst element's error, in units of what is allowed.
    """

    us: Mapping[str, Sequence[float]]
    stages_us: Mapping[str, Mapping[str, Sequence[float]]] = field(default_factory=dict)
    sent_rows: Mapping[str, int] = field(default_factory=dict)
    errors: Mapping[str, float] = field(default_factory=dict)


def check(cases: Sequence[Case], *, device: str = "cuda", limit_s: float = 300.0) -> list[dict[str, float]]:
    """Hold every way's answers against the float64 truth of one card, token by token.

    Args:
        cases: what to ask.
        device: "cuda"; or "cpu": two processes, gloo instead of NCCL, files instead of mapped memory.
        limit_s: seconds for all of it.
    Returns:
        For each case and way the worst error over all cards, in units of what is allowed; above 1, or NaN, is wrong.
    Raises:
        CardsFailed: a process failed, or time is up.
    """
    found = run(
        "check", {"cases": [dataclasses.asdict(case) for case in cases]}, device=device, limit_s=limit_s
    )
    return [_worst([card[number] for card in found]) for number in range(len(cases))]


def race(cases: Sequence[Case], *, device: str = "cuda", limit_s: float = 300.0) -> list[Raced]:
    """Race the ways on two GPUs, each answer checked before and after.

    Args:
        cases: what to race.
        device: as in `check`; on the CPU it is only to see whether a race runs.
        limit_s: seconds for all of it.
    Raises:
        CardsFailed: a wrong answer, a process that failed, or time is up.
    """
    found = run(
        "race", {"cases": [dataclasses.asdict(case) for case in cases]}, device=device, limit_s=limit_s
    )
    return [_raced([card[number] for card in found]) for number in range(len(cases))]


def link(size_bytes: int, rounds: int = 20, *, limit_s: float = 120.0) -> dict[str, list[float]]:
    """Time one large copy to the other card: what the link gives to whoever has nothing else to do.

    Args:
        size_bytes: of the copy.
        rounds: of each.
        limit_s: seconds for all of it.
    Returns:
        Microseconds of each round, the slower card: "one_way", card 0 to card 1 alone; "both_ways", each to the other
        at once; "stores", the same as both ways by `place_rows`.
    Raises:
        CardsFailed: bytes that did not arrive, a process that failed, or time is up.
    """
    found = run("link", {"size_bytes": size_bytes, "rounds": rounds}, limit_s=limit_s)
    return {name: slower([card[name] for card in found]) for name in found[0]}


def reduce(
    sizes_bytes: Sequence[int], rounds: int = 12, *, device: str = "cuda", limit_s: float = 120.0
) -> list[dict[str, list[float]]]:
    """Time an AllReduce of float32 numbers, by our ring and by the library, interleaved; every bit is held.

    Args:
        sizes_bytes: of the messages, multiples of eight.
        rounds: of each; a message doubles in every one, so that hundreds of them would leave float32.
        device: "cuda"; or "cpu", to see whether it runs.
        limit_s: seconds for all of it.
    Returns:
        For each size microseconds of each round, the slower card: "ring", `course_kernels.all_reduce.ring`; "library",
        `torch.distributed.all_reduce`.
    Raises:
        CardsFailed: a wrong bit, a process that failed, or time is up.
    """
    found = run("reduce", {"sizes_bytes": [*sizes_bytes], "rounds": rounds}, device=device, limit_s=limit_s)
    return [
        {way: slower([card[number][way] for card in found]) for way in found[0][number]}
        for number in range(len(sizes_bytes))
    ]


def slower(cards: Sequence[Sequence[float]]) -> list[float]:
    """Return of each round the slower card's time."""
    return [max(of_round) for of_round in zip(*cards, strict=True)]


def _worst(cards: Sequence[Mapping[str, float]]) -> dict[str, float]:
    # max() would lose a NaN that comes second.
    found = {way: [card[way] for card in cards] for way in cards[0]}
    return {
        way: float("nan") if any(e != e for e in errors) else max(errors) for way, errors in found.items()
    }


def _raced(cards: Sequence[Mapping[str, Any]]) -> Raced:
    first = cards[0]
    us = {way: slower([card["us"][way] for card in cards]) for way in first["us"]}
    stages = {
        way: {stage: slower([card["stages_us"][way][stage] for card in cards]) for stage in of_way}
        for way, of_way in first["stages_us"].items()
    }
    rows = {way: max(card["sent_rows"][way] for card in cards) for way in first["sent_rows"]}
    return Raced(us, stages, rows, _worst([card["errors"] for card in cards]))


def run(
    task: str,
    asked: Mapping[str, Any],
    *,
    module: str = "course_kernels.two_cards",
    device: str = "cuda",
    limit_s: float = 120.0,
) -> list[Any]:
    """Start a process for each card, and return what each wrote.

    Args:
        task: one that the module knows.
        asked: for it, plain data.
        module: `python -m MODULE FOLDER CARD` is a card's part.
        device: "cuda", or "cpu": gloo instead of NCCL, Triton's interpreter.
        limit_s: seconds for all of it.
    Raises:
        CardsFailed: a process failed, or time is up.
    """
    with tempfile.TemporaryDirectory(prefix="course-cards-") as name:
        folder = Path(name)
        (folder / "asked.json").write_text(json.dumps({"task": task, "device": device, **asked}))
        environment = {**os.environ, **SETTINGS}
        paths = [str(SOURCES), environment.get("PYTHONPATH", "")]
        environment["PYTHONPATH"] = os.pathsep.join(filter(None, paths))
        environment.pop("TRITON_INTERPRET", None)
        if device == "cpu":
            environment |= {"TRITON_INTERPRET": "1", "OMP_NUM_THREADS": "1"}
        children = []
        try:
            for card in range(CARDS):
                command = [sys.executable, "-m", module, str(folder), str(card)]
                with (folder / f"said{card}").open("wb") as said:
                    children.append(
                        subprocess.Popen(command, env=environment, stdout=said, stderr=subprocess.STDOUT)
                    )
            _wait(children, folder, task, limit_s)
        finally:
            for child in children:
                if child.poll() is None:
                    child.kill()
                child.wait()
        return [json.loads((folder / f"found{card}.json").read_text()) for card in range(CARDS)]


def _wait(children: Sequence[subprocess.Popen[bytes]], folder: Path, task: str, limit_s: float) -> None:
    deadline = time.monotonic() + limit_s
    while True:
        codes = [child.poll() for child in children]
        for card, code in enumerate(codes):
            if code:
                said = (folder / f"said{card}").read_text(errors="replace").strip().splitlines()
                raise CardsFailed(f"card {card}: {task} ended with {code}: {said[-1] if said else 'no word'}")
        if all(code == 0 for code in codes):
            return
        if time.monotonic() > deadline:
            raise CardsFailed(f"{task}: no end after {limit_s:g} s: ended from outside")
        time.sleep(0.02)
