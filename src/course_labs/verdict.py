"""Verdict of the grader: one property, where it shows, and what to try next."""

from __future__ import annotations

from dataclasses import dataclass, field

from course_judge.protocol.verdict import NOT_JUDGED, RIGHT

NOT_BEGUN = "not begun"  # of the last task: the file has no function of its name
NOT_RUN = "not run"  # a .cu on a machine without a GPU: compiled, and no more

PASSED, REFUSED, USAGE, UNGRADED = (
    0,
    1,
    2,
    3,
)  # exit codes; 2 for a file, too, that asks for a card where none is

NEXT = {
    "syntax error": "Python cannot read that line; look at it, and at the end of the line before it.",
    "function missing": "define it at the left margin of your file, with exactly this name.",
    "crashed": "print what goes into that line, on this smallest size.",
    NOT_JUDGED: "write that line differently, or have your file graded where there is a card.",
    "died": "an address far outside every tensor does that. Which index can be too large, or below 0?",
    "timed out": "does every loop end? Does the grid have as many programs as you meant?",
    "not yours": "write that part yourself; it is what the lab is about.",
    "holds too much": "bring one tile at a time: what you hold must not grow with the inputs.",
    "not in blocks": "start one program for each block; its number says where its block begins.",
    "does not compile": "mend the first error first; the others often follow from it.",
    "wrong result": "return all that is asked for, in that order, and nothing else.",
    "wrong shape": "look at the line that makes the output.",
    "wrong dtype": "look at the line that makes the output: it has the dtype of the input.",
    "wrong device": "make the output where the input is, for example with torch.empty_like.",
    "shares memory": "give the output memory of its own, for example with torch.empty_like.",
    "input modified": "store to the output only; somebody still needs the input.",
    "all NaN": (
        "nothing of the output was written. Is the kernel launched, with at least one program? "
        "Does it store, and to the output? Does the mask let anybody through? "
        "Or does it add to memory that does not start at 0?"
    ),
    "not written": (
        "which program should have written that element, and which places does it write? "
        "Work out its place in the grid by hand. If it does write there, some step makes NaN, as inf - inf does."
    ),
    "NaN lost": (
        "NaN went in, and a plain number came out. Look for what drops it: a maximum, a clamp, a comparison. "
        "All comparisons with NaN are false."
    ),
    "infinity lost": "look for what cuts it off, such as a clamp, or a largest number that is not infinite.",
    "a view": "store every element where it belongs; .t() or .T at the end only renames the axes.",
    "not a plain tensor": "return what torch.empty_like gave you, once your kernel has filled it.",
    "same memory twice": "make the output inside the function, in every call: somebody still holds the last one.",
    "wrong": "take that one element and work it out by hand; which of its inputs did your code read instead?",
    "cached result": "work out the answer again in every call; the same tensors can hold new values.",
    "wrong in the end": "what does your code keep from one call to the next? It must forget it.",
    "another stream": (
        "launch on the current stream, or what comes after it will not wait for you. "
        "If you named no stream, two programs use one place at the same time."
    ),
    "out of bounds": (
        "something is stored outside. Is the store masked? Does the mask compare each index with its own end? "
        "If it does: work out the largest index by hand; what is it multiplied by?"
    ),
    "stored twice": "one of the values is lost. Should each have its own place? Or do they belong together?",
    "a race": "on a card nothing says which comes first. Which place do two programs use, and must they?",
    "out of memory": "what grows with every step? Let go of what you no longer need.",
    "out of room": "write less: return the answer; no file is asked for.",
    "too many processes": "one process is enough; who starts the others?",
    "left behind": "wait for what you start, or do not start it.",
    "out of turn": "leave what is not yours alone; return the answer.",
    "clock": "return once the work is queued on the current stream, and leave the events alone.",
    "faster than the floor": "nobody is: some of the work was not done in the timed call.",
}


@dataclass(frozen=True)
class Verdict:
    """The outcome of grading one file.

    Attributes:
        found: `RIGHT`, `NOT_RUN`, or the property that failed, a key of `NEXT`.
        why: what exactly is wrong; for a right file, what was tried, and the clause about its speed.
        on: the smallest size it shows on; empty where no size was tried.
        next: a step to try, where the usual one does not fit.
        lines: further lines, such as the time and the percent of peak.
        alone: of a file that is right, what was found of the lab's last task; None where the lab has none.
        printed: what the file printed, escaped.
        ran: how it was run, where that was not as on a card.
    """

    found: str
    why: str = ""
    on: str = ""
    next: str = ""
    lines: tuple[str, ...] = ()
    alone: Verdict | None = None
    printed: str = field(default="", compare=False)
    ran: str = field(default="", compare=False)

    @property
    def code(self) -> int:
        """The exit code. A last task that is not begun takes nothing away."""
        if self.alone and self.alone.code == REFUSED:
            return REFUSED
        codes = {RIGHT: PASSED, NOT_BEGUN: PASSED, NOT_RUN: UNGRADED, NOT_JUDGED: USAGE}
        return codes.get(self.found, REFUSED)

    def _good(self, right: str) -> str:
        heads = {RIGHT: f"{right}: {self.why}", NOT_BEGUN: f"next, the lab's last task: {self.why}"}
        return heads.get(self.found, self.why)

    def _last(self) -> list[str]:
        """Line about the last task: what to do next, or that nothing is left to do."""
        if self.alone is None:
            return []
        if self.alone.found == RIGHT:
            return [
                "\n".join([f"alone: {self.alone._good('right, and the lab is done')}", *self.alone.lines])
            ]
        return [f"alone: {self.alone.text}"]

    @property
    def text(self) -> str:
        """Text for the student."""
        if self.found in (RIGHT, NOT_RUN, NOT_BEGUN):
            return "\n".join([self._good("right"), *self.lines, *self._last()])
        where = f" on {self.on}" if self.on else ""
        what = f"{self.found}: {self.why}" if self.why else self.found
        how = "not judged" if self.found == NOT_JUDGED else "refused"
        return "\n".join([f"{how}{where}: {what}", *self.lines, f"next: {self.next or NEXT[self.found]}"])
