"""The last task of the weak judge: cheats of kinds that no stage has named, and what a mend costs honest kernels."""

import random
from pathlib import Path

from course_labs.interactive_cases import Asked, Play
from course_labs.lab import load_file

truth = load_file(Path(__file__).with_name("truth.py"), "lab_truth_of_the_judge")
Kernel = truth.Kernel


def cases() -> list[Play]:
    """Honest kernels, the kinds of the lab, and further kinds."""
    return [
        Play(
            "honest kernels",
            lambda asked, rng: truth.passes(asked, "strict", truth.honest(rng), rng, bytes=True),
        ),
        Play("the lab's five kinds", known),
        *(
            Play(says, lambda asked, rng, kind=kind: truth.refuses(asked, "strict", kind(rng), rng))
            for says, kind in KINDS.items()
        ),
        Play("kernels of all kinds in any order", by_chance, again=1),
    ]


def known(asked: Asked, rng: random.Random) -> None:
    """Cheats that the judge refuses already."""
    kernels = [kernel for hole in truth.HOLES for kernel in truth.cheats(hole, rng)]
    truth.refuses(asked, "strict", kernels, rng)


def timed_call(rng: random.Random) -> list[Kernel]:
    """Calls that are counted."""
    advice = (
        "it does its work until it takes the call for the timed one: which of your calls does nobody check?"
    )
    return [
        Kernel(f"is idle in the {says}", "lazy", {"before": before}, advice)
        for says, before in (("last call", 0), ("last call but one", 1), ("last call but two", 2))
    ]


def later(rng: random.Random) -> list[Kernel]:
    """Answers that do not last."""
    advice = "an answer must still be right when the caller has called again: when is it looked at?"
    return [
        Kernel("overwrites the answer before", "corrupts", {"back": 1}, advice),
        Kernel("overwrites an earlier answer", "corrupts", {"back": rng.choice([2, 3])}, advice),
    ]


def places(rng: random.Random) -> list[Kernel]:
    """Answers kept by address."""
    advice = (
        "the same memory may hold other numbers in the next call: does your judge ever write into it again?"
    )
    return [Kernel("keeps an answer for the place where an input lies", "by_address", {}, advice)]


def numbers(rng: random.Random) -> list[Kernel]:
    """Numbers that are hardly ever drawn."""
    advice = "which numbers does a normal distribution all but never draw? They are inputs like any other."
    return [
        Kernel(f"is wrong for {says}", "without", {"what": what}, advice)
        for says, what in (
            ("numbers of some hundreds", "large"),
            ("rows of equal numbers", "alike"),
            ("rows with two largest numbers", "ties"),
            ("zeros", "zeros"),
            ("-0.0", "signed zeros"),
        )
    ]


def floor(rng: random.Random) -> list[Kernel]:
    """Work that nobody counts."""
    advice = "how many bytes must any kernel move that reads all of x and writes all of out?"
    return [
        Kernel(f"works {says}", "off_the_clock", {"how": how}, advice)
        for says, how in (
            ("before anything is queued", "at once"),
            ("on more than it queues", "small"),
            ("on an input that it does not queue", "half"),
        )
    ]


def surroundings(rng: random.Random) -> list[Kernel]:
    """Memory that is somebody else's."""
    advice = "what lies between the rows of the output belongs to somebody else: is it as it was?"
    return [Kernel("overwrites what lies between the rows of its output", "past_the_end", {}, advice)]


def empty(rng: random.Random) -> list[Kernel]:
    """Nothing to do."""
    return [Kernel("raises an error for no rows at all", "no_rows", {}, "0 rows are legal in this task.")]


def filling(rng: random.Random) -> list[Kernel]:
    """A room that shows that it is watched."""
    advice = "whoever knows what you fill the room with knows when it is judged: is it always the same?"
    return [
        Kernel("works only where the room holds NaN", "knows_the_filling", {"what": "nan"}, advice),
        Kernel(
            "works only where the room holds one number, or NaN",
            "knows_the_filling",
            {"what": "alike"},
            advice,
        ),
    ]


KINDS = {
    "a cheat that counts": timed_call,
    "a cheat that comes back": later,
    "a cheat that knows a place": places,
    "a cheat that knows numbers": numbers,
    "a cheat that works unseen": floor,
    "a cheat that writes elsewhere": surroundings,
    "a cheat that expects work": empty,
    "a cheat that knows when it is watched": filling,
}


def by_chance(asked: Asked, rng: random.Random) -> None:
    """All of them, in an order that nobody knows."""
    mixed = [(kernel, True) for kernel in truth.honest(rng)]
    mixed += [(kernel, False) for kind in KINDS.values() for kernel in kind(rng)]
    rng.shuffle(mixed)
    found = truth.judged(asked, "strict", [kernel for kernel, _ in mixed], rng)
    for (kernel, is_honest), one in zip(mixed, found, strict=True):
        truth.look("strict", kernel, one, is_honest, True)
