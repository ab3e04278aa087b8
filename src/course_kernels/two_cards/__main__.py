"""One card's part of a check or a race: `python -m course_kernels.two_cards FOLDER CARD`; see together.py."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist

from course_kernels.expert_parallel.layer import ALLOWED, Experts, experts_of, tokens, truth
from course_kernels.expert_parallel.mailbox import (
    FileMailbox,
    FilePair,
    Mailbox,
    Pair,
    SymmetricMailbox,
    SymmetricPair,
)
from course_kernels.expert_parallel.plan import outgoing, rows_for_each_choice
from course_kernels.problem import worst_error
from course_kernels.two_cards.clock import Clock
from course_kernels.two_cards.together import CARDS, Case

BLOCKS = 3  # of a race, each with tokens and memory of its own
PACKAGE = "course_kernels.expert_parallel"

Inputs = tuple[torch.Tensor, torch.Tensor, torch.Tensor]  # x, chosen, weights


class Table:
    """The ways of one case, as one card calls them."""

    def __init__(self, case: Case, card: int, folder: Path, device: str) -> None:
        self.case, self.card, self.device = case, card, device
        layer = case.layer
        self.experts = experts_of(layer, card, CARDS, case.seed, device)
        self.all_experts: Experts | None = None
        if "replicated" in case.ways:
            self.all_experts = experts_of(layer, 0, 1, case.seed, device)
        sizes = (max(case.T), layer.D, layer.TOP_K)
        self.mailbox: Mailbox | None = None
        if {"stored", "overlapped"} & set(case.ways):
            self.mailbox = SymmetricMailbox(*sizes) if device == "cuda" else FileMailbox(folder, *sizes)

    def inputs(self, block: int) -> Inputs:
        """Draw this card's tokens of a block."""
        case = self.case
        seed = case.seed + 7919 * block
        return tokens(case.layer, case.T[self.card], case.load, self.card, CARDS, seed, self.device)

    def call(self, way: str, inputs: Inputs, **how: Any) -> torch.Tensor:
        """Call one way on this card."""
        function = import_module(f"{PACKAGE}.{way}").expert_parallel
        if way == "replicated":
            return function(*inputs, self.all_experts)
        if way in ("stored", "overlapped"):
            how["mailbox"] = self.mailbox
        return function(*inputs, self.experts, **how)

    def error(self, y: torch.Tensor, due: torch.Tensor) -> float:
        """Return the error of the worst element, in units of what is allowed."""
        return worst_error(y, due) / ALLOWED

    def due(self, inputs: Inputs) -> torch.Tensor:
        """Return the truth, worked out on this card alone."""
        return truth(self.case.layer, *inputs, self.case.seed)


def check(asked: dict[str, Any], card: int, folder: Path) -> list[dict[str, float]]:
    """Return the errors of all ways in all cases; each way is called twice, on different tokens, in the same memory."""
    found = []
    for number, data in enumerate(asked["cases"]):
        place = folder / f"case{number}"
        place.mkdir(exist_ok=True)
        table = Table(Case.from_json(data), card, place, asked["device"])
        if table.mailbox is not None:  # what nobody has written is nobody's answer
            for part in (table.mailbox.mine.rows, table.mailbox.mine.sums):
                part.fill_(float("nan"))
        dist.barrier()
        draws = [(inputs, table.due(inputs)) for inputs in map(table.inputs, range(2))]
        errors = {}
        for way in table.case.ways:
            of_draws = [table.error(table.call(way, inputs), due) for inputs, due in draws]
            errors[way] = float("nan") if any(e != e for e in of_draws) else max(of_draws)
        found.append(errors)
        dist.barrier()
    return found


def race(asked: dict[str, Any], card: int, folder: Path) -> list[dict[str, Any]]:
    """Return what one card saw of all races.

    Raises:
        RuntimeError: a wrong answer.
    """
    clock = Clock(card, asked["device"])
    found = []
    for number, data in enumerate(asked["cases"]):
        place = folder / f"case{number}"
        place.mkdir(exist_ok=True)
        table = Table(Case.from_json(data), card, place, asked["device"])
        case = table.case
        errors = dict.fromkeys(case.ways, 0.0)
        for block in range(BLOCKS):
            inputs = table.inputs(block)
            due = table.due(inputs)
            calls = {way: _call(table, way, inputs) for way in case.ways}
            for way, call in calls.items():  # compiles, too
                _refuse_wrong(table, way, call(lambda stage: None), due, errors)
            last = clock.rounds(calls, case.rounds // BLOCKS, seed=case.seed + block)
            for way, y in last.items():
                _refuse_wrong(table, way, y, due, errors)
        inputs = table.inputs(0)
        rows = {
            "by_choice": int(rows_for_each_choice(inputs[1], card, table.experts.held)),
            "by_card": int(outgoing(inputs[1], card, CARDS, table.experts.held).counts.sum()),
        }
        found.append({**clock.taken(), "sent_rows": rows, "errors": errors})
        dist.barrier()
    return found


def _call(table: Table, way: str, inputs: Inputs) -> Any:
    if way in ("replicated", "overlapped"):
        return lambda mark: table.call(way, inputs)
    return lambda mark: table.call(way, inputs, mark=mark)


def _refuse_wrong(
    table: Table, way: str, y: torch.Tensor, due: torch.Tensor, errors: dict[str, float]
) -> None:
    error = table.error(y, due)
    if not error <= 1:
        raise RuntimeError(f"{way}, T={table.case.T}, {table.case.load}: {error:.3g} of what is allowed")
    errors[way] = max(errors[way], error)


def link(asked: dict[str, Any], card: int, folder: Path) -> dict[str, list[float]]:
    """Return the times of large copies to the other card.

    Raises:
        RuntimeError: bytes that did not arrive.
    """
    from course_kernels.expert_parallel.rows import place_rows

    W = 4096
    CAPACITY = asked["size_bytes"] // (2 * W)
    mailbox = SymmetricMailbox(CAPACITY, W, 1)
    source = torch.empty(CAPACITY, W, dtype=torch.bfloat16, device="cuda")
    every = torch.arange(CAPACITY, device="cuda")
    calls = {
        "one_way": lambda mark: mailbox.theirs.rows.copy_(source) if card == 0 else None,
        "both_ways": lambda mark: mailbox.theirs.rows.copy_(source),
        "stores": lambda mark: place_rows(source, every, mailbox.theirs.rows),
    }
    for number, (name, call) in enumerate(calls.items()):
        source.fill_(2 * number + card + 1)
        call(lambda stage: None)
        torch.cuda.synchronize()
        dist.barrier()
        torch.cuda.synchronize()
        expected = 2 * number + (1 - card) + 1
        if (name != "one_way" or card == 1) and not bool((mailbox.mine.rows == expected).all()):
            raise RuntimeError(f"{name}: what arrived on card {card} is not what was sent")
        dist.barrier()  # the next copy would come into what the other card still looks at
    clock = Clock(card)
    clock.rounds(calls, asked["rounds"], seed=0)
    return clock.taken()["us"]


def reduce(asked: dict[str, Any], card: int, folder: Path) -> list[dict[str, list[float]]]:
    """Return for each size the times of an AllReduce by the ring and by the library; both sums are held bit for bit.

    Raises:
        RuntimeError: a sum with a wrong bit, before or after its time was taken.
    """
    from course_kernels.all_reduce.ring import Ring, bytes_of

    device, sizes = asked["device"], [size // 4 for size in asked["sizes_bytes"]]
    room = bytes_of(max(sizes))
    pair: Pair = SymmetricPair(room) if device == "cuda" else FilePair(folder, room)
    whole = torch.empty(max(sizes), dtype=torch.float32, device=device)
    clock = Clock(card, device)
    found = []
    for N in sizes:
        ring, x = Ring(pair, N), whole[:N]
        ways = {
            "ring": (ring.x, lambda mark, ring=ring: ring.all_reduce()),
            "library": (x, lambda mark, x=x: dist.all_reduce(x)),
        }
        _refuse_wrong_sums(ways, card)
        clock.rounds({way: call for way, (_, call) in ways.items()}, asked["rounds"], seed=N)
        _refuse_wrong_sums(ways, card)
        found.append(clock.taken()["us"])
    return found


def _refuse_wrong_sums(ways: Mapping[str, tuple[torch.Tensor, Any]], card: int) -> None:
    """Call each way on fresh messages. With two cards there is one way to add, so every bit is due."""
    for number, (way, (x, call)) in enumerate(ways.items()):
        messages = []
        for of_card in range(CARDS):
            draw = torch.Generator(x.device).manual_seed(CARDS * number + of_card)
            messages.append(torch.randn(x.shape, generator=draw, device=x.device))
        x.copy_(messages[card])
        dist.barrier()
        call(lambda stage: None)
        if not torch.equal(x, messages[0] + messages[1]):
            raise RuntimeError(f"{way}, N={x.numel()}: the sum on card {card} has a wrong bit")
        dist.barrier()


TASKS = {"check": check, "race": race, "link": link, "reduce": reduce}


def main(arguments: list[str], tasks: Mapping[str, Any] = TASKS) -> int:
    """Join the other card's process, do the task, write what was found.

    Args:
        arguments: the folder, and the card.
        tasks: by name; each is handed what was asked, the card, and the folder.
    """
    if len(arguments) != 2:
        print("usage: python -m course_kernels.two_cards FOLDER CARD (together.py starts it)")
        return 2
    folder, card = Path(arguments[0]), int(arguments[1])
    asked = json.loads((folder / "asked.json").read_text())
    is_on_gpu = asked["device"] == "cuda"
    if is_on_gpu and torch.cuda.device_count() < CARDS:
        print(f"two cards: expected {CARDS} GPUs, got {torch.cuda.device_count()}")
        return 1
    how: dict[str, Any] = {"backend": "gloo"}
    if is_on_gpu:
        torch.cuda.set_device(card)
        how = {"backend": "nccl", "device_id": torch.device("cuda", card)}
    store = dist.FileStore(str(folder / "meet"), CARDS)
    dist.init_process_group(store=store, rank=card, world_size=CARDS, **how)
    try:
        with torch.no_grad():
            found = tasks[asked["task"]](asked, card, folder)
        (folder / f"found{card}.json").write_text(json.dumps(found))
        dist.barrier()
    finally:
        dist.destroy_process_group()
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
