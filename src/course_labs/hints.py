"""Hints on what to try next, for mistakes whose message does not say it, in words a beginner knows."""

from __future__ import annotations

import math
import re

from course_judge.protocol.verdict import refused
from course_labs.lab import ON_THE_CPU
from course_labs.verdict import Verdict

ENDED_ITSELF = "your file ended the process itself: look for an exit in it, and read what is printed above."
NEXT_BY_HAND = "work that case out on paper; it is small."
NEXT_AFTER_A_RACE = (
    "two threads use one place at the same time, and which comes first is chance. Where must they wait?"
)
NEXT_OF_NAN = (
    "nothing of the output was written. Or a step makes NaN, as 0 / 0 and inf - inf do: print what it made."
)
NEXT_OF_A_STRANGE_NUMBER = "that number is in no input: a load reads outside. Which index is too large?"
STRANGE = 1e5  # times what is due, and past any ordinary input
NEXT_OF_NONE = "it returns nothing yet; end it with a `return`."
NEXT_OF_HARD_VALUES = (
    "other numbers did arrive there. With these values some step makes NaN, "
    "as inf - inf and 0 * inf do: which?"
)
NEXT_OF_LARGE_INPUTS = (
    "with smaller numbers it was right. Which step makes one too large to hold? "
    "inf - inf and inf / inf are NaN."
)
NEXT_OF_A_READ = "that load reads outside. Is it masked? Does the mask compare each index with its own end?"
NEXT_OF_A_YES_OR_NO = (
    "a row of numbers has many answers, and `if`, `and`, `or`, `not` and 0 <= i < N want one yes or no: "
    "write (0 <= i) & (i < N), with | for or and ~ for not. "
    "Each comparison in its own brackets: & binds tighter than <."
)

# First mistakes that get an answer in words a beginner cannot know: what the message has, what to do.
NEXT_AFTER = {
    "grid_idx": "a kernel is launched with its grid: kernel[(programs,)](…).",
    "Cannot call @triton.jit": "a kernel is launched with its grid: kernel[(programs,)](…).",
    "'builtin_function_or_method' object has no": "a kernel is launched with its grid: kernel[(programs,)](…).",
    "object of type 'int' has no len()": "a grid is a tuple, also when it has one number: (programs,).",
    "'int' object is not iterable": "a pointer has no elements; read it with tl.load(pointer + i).",
    "predict first": "the check below your numbers does not come out yet: once more on paper, before you type on.",
    "does not have enough dimensions": "one of the two is not a matrix: does every function end with a `return`?",
    "in its core dimension": "print both shapes: what must be equal, the last of the one and the first of the other?",
    "could not be broadcast": "print both shapes: which axis should have length 1, or which array be turned?",
    "could not broadcast": "print both shapes: is one of them cut at an edge, and the other not?",
    "0-dimensional arrays can be converted": "math has functions for one number; NumPy's take an array: np.exp.",
    "only length-1 arrays can be converted": "math has functions for one number; NumPy's take an array: np.exp.",
    "is not defined": "that name has no value yet: is it spelt as it is where you make it?",
    "The truth value of a": NEXT_OF_A_YES_OR_NO,
    "Boolean value of Tensor with more than one value": NEXT_OF_A_YES_OR_NO,
    "simultaneous multiple comparison": NEXT_OF_A_YES_OR_NO,
}

NEXT_OF_THE_HOST = (
    "only what runs on the card is compiled here, and the grader launches it: leave out main, and what starts a kernel "
    "with <<<…>>>. A function that your kernel calls begins with __device__."
)
NEXT_OF_A_HEADER_OF_THE_HOST = (
    "that header is the host's, and only the kernel is compiled here: take the line out."
)
NEXT_OF_A_NAME_OF_ITS_OWN = "NVRTC has printf, assert and the maths without an include: take the line out."
NEXT_OF_A_LIMIT = "write #include <cuda/std/climits>."
NEXT_OF_A_LARGEST = "NVRTC has no such header: write FLT_MAX as a number, 3.4028235e38f."
NEXT_OF_A_WIDTH = "write unsigned int or long long, or #include <cuda/std/cstdint>."
# The headers that people bring from nvcc, and what to do without them.
HEADERS = (
    dict.fromkeys(("stdio.h", "cstdio", "math.h", "cmath", "assert.h", "cassert"), NEXT_OF_A_NAME_OF_ITS_OWN)
    | dict.fromkeys(("float.h", "cfloat"), NEXT_OF_A_LARGEST)
    | dict.fromkeys(("limits.h", "climits"), NEXT_OF_A_LIMIT)
    | dict.fromkeys(("stdint.h", "cstdint"), NEXT_OF_A_WIDTH)
)
NAMES = {
    "INFINITY": "write __int_as_float(0x7f800000), or a finite number that is low enough.",
    "NAN": "write __int_as_float(0x7fffffff).",
    "FLT_MAX": NEXT_OF_A_LARGEST,
    "INT_MAX": NEXT_OF_A_LIMIT,
    "uint32_t": NEXT_OF_A_WIDTH,
    "uint64_t": NEXT_OF_A_WIDTH,
    "uint8_t": NEXT_OF_A_WIDTH,
}

NEXT_OF_A_MISSING_ARGUMENT = (
    "the launch gives each argument of the kernel, in its order, and the constants by name: BLOCK=BLOCK."
)
NEXT_OF_NUMPY_IN_A_KERNEL = (
    "NumPy and torch do not work in a kernel: write what tl. has for it, or plain arithmetic."
)
NEXT_OF_NO_CALL = "a function is called with brackets: tl.program_id(0)."
# The same for what only Triton says.
NEXT_AFTER_TRITON = {
    "must be a power of 2": "tl.arange takes powers of two only: the next one, and a mask.",
    "operands of type pointer": "a place must be a whole number: is there a / in it? Write //.",
    "Unsupported ptr type": "tl.load and tl.store take a pointer, and the places added to it: tl.load(x_ptr + i).",
    "Value argument cannot be block type": "many numbers for one place: what must be added to the pointer?",
    "maximum() missing": "tl.maximum takes two and gives the larger one; the largest of a row is tl.max(…, axis=0).",
    "minimum() missing": "tl.minimum takes two and gives the smaller one; the smallest of a row is tl.min(…, axis=0).",
    "Cannot make_shape_compatible": "a row and a column: which of the two needs [:, None], and which [None, :]?",
    "required positional argument": NEXT_OF_A_MISSING_ARGUMENT,
    "'numpy.ndarray' object has no attribute 'type'": NEXT_OF_NUMPY_IN_A_KERNEL,
    "'NoneType' object has no attribute 'to_tensor'": NEXT_OF_NUMPY_IN_A_KERNEL,
    "object of type 'tensor' has no len()": "nothing in a kernel knows its length: it is an argument of the kernel.",
    "'float' object cannot be interpreted as an integer": "a grid has whole numbers: triton.cdiv(N, BLOCK).",
    "must be tuple of ints, not float": "a size is a whole number: is there a / in it? Write //.",
    "'function' and 'int'": NEXT_OF_NO_CALL,
    "'int' and 'function'": NEXT_OF_NO_CALL,
    "'function' object is not subscriptable": "only a kernel takes a grid: is @triton.jit above it?",
    "unsupported tensor index": (
        "a row of numbers takes [:, None] and [None, :] and no other index: which places do you want? Load those."
    ),
    "cannot convert": NEXT_OF_NUMPY_IN_A_KERNEL,
    "setting an array element": NEXT_OF_NUMPY_IN_A_KERNEL,
    "must be Tensor, not tensor": NEXT_OF_NUMPY_IN_A_KERNEL,
    "Torch not compiled with CUDA enabled": "make it where the input is: device=x.device.",
    "triton.language must be visible": "is `import triton.language as tl` at the top of your file?",
    "Cannot access global variable": "give it to the kernel as an argument, as a tl.constexpr if it is fixed.",
}

NEXT_OF_PYTHON_IN_A_KERNEL = (
    "inside a kernel use only tl. and plain arithmetic on numbers: "
    "NumPy's and Python's own functions are not there."
)
NEXT_OF_NO_PROGRAM = (
    "{program} is what one program does with its block; the loop in {entry} starts it, once for each block."
)
NEXT_OF_A_RETURN = "a program stores its own block and gives nothing back: no kernel can."
NEXT_OF_ONE_EACH = "give each program a block, as many places as BLOCK or TILE says, all of them in one step."
NEXT_OF_FEW_PROGRAMS = "start one program for each block; its number says where its block begins."
NEXT_OF_ANOTHERS_BLOCK = "each program does its own block and no more; its number says where that begins."

NUMPYS_ADVICE = ". Use a.any() or a.all()"  # what a mask never wants


def broken(found: str, why: str, on: str, door: str, given: str = "") -> Verdict:
    """Return the verdict on a file whose process said what went wrong, or did not answer.

    Args:
        given: advice that came with it.
    """
    why = why.removesuffix(NUMPYS_ADVICE)
    if found == "crashed" and not given:
        given = after_a_crash(why, door)
    if found == "does not compile" and not given:
        given = after_nvrtc(why) or advice_after(why)
    if found == "died" and ("exit code" in why or "ended the process itself" in why):
        given = ENDED_ITSELF
    if found == "out of bounds" and " read" in why:
        given = NEXT_OF_A_READ
    return Verdict(found, why, on, given)


def after_a_crash(said: str, door: str) -> str:
    """Hint after an exception; empty if it has none of its own."""
    if "NotImplementedError" in said:
        return "that line waits for you: write it."
    if "illegal memory access" in said or "misaligned" in said:
        return "an address outside every tensor: check index and mask; compute-sanitizer names the thread."
    return advice_after(said, door)


def after_nvrtc(said: str) -> str:
    """Hint after an error that a `.cu` made for nvcc meets in NVRTC; empty after any other."""
    if header := re.search(r'cannot open source file "([^"]+)"', said):
        return HEADERS.get(header[1], NEXT_OF_A_HEADER_OF_THE_HOST)
    if name := re.search(r'identifier "(\w+)" is undefined', said):
        return NAMES.get(name[1], "")
    if 'namespace "std" has no member' in said:
        return "the maths of a kernel has no namespace: max, min, sqrtf."
    return NEXT_OF_THE_HOST if "host function" in said or "__host__ function" in said else ""


def advice_after(said: str, door: str = "") -> str:
    """Hint after an error that has one of its own; empty after any other."""
    known = NEXT_AFTER | (NEXT_AFTER_TRITON if door == "triton" else {})
    return next((advice for sign, advice in known.items() if sign in said), "")


def not_in_blocks(program: str, entry: str, started: int, on: str) -> Verdict:
    """Return the verdict on right numbers that no program has written.

    Args:
        program: the function that says what one program does.
        started: how often it was called; -1 if there is no such function.
    """
    if started > 0:
        return Verdict("not in blocks", f"{program} returns something", on, NEXT_OF_A_RETURN)
    what = f"{program} is never started" if started == 0 else f"your file defines no {program}"
    return Verdict(
        "not in blocks",
        f"right numbers, but {what}",
        on,
        NEXT_OF_NO_PROGRAM.format(program=program, entry=entry),
    )


def blocks_of_a_wrong_size(program: str, started: int, numbers: int, most: int, on: str) -> Verdict:
    """Return the verdict on right numbers by too many programs, or by too few.

    Args:
        most: numbers that one program may have for its own.
    """
    if 2 * started > numbers:
        why = f"right numbers, but {program} is started {started} times for {numbers} numbers: that is not a block each"
        return Verdict("not in blocks", why, on, NEXT_OF_ONE_EACH)
    times = "once" if started == 1 else f"{started} times"
    why = f"right numbers, but {program} is started {times} for {numbers} numbers; a block has {most} at most"
    return Verdict("not in blocks", why, on, NEXT_OF_FEW_PROGRAMS)


def not_its_own_block(program: str, started: int, kept: str, on: str) -> Verdict:
    """Return the verdict on right numbers for which the programs that were kept are enough: `first` or `others`."""
    what = "does all of them" if kept == "first" else "is not needed for any"
    why = f"right numbers, but the first of {started} calls of {program} {what}"
    return Verdict("not in blocks", why, on, NEXT_OF_ANOTHERS_BLOCK)


def not_by_its_number(program: str, started: int, on: str) -> Verdict:
    """Return the verdict on right numbers by programs that do another block once the first is left out."""
    why = (
        f"right numbers, but without the first of {started} calls of {program} the others do different blocks"
    )
    return Verdict("not in blocks", why, on, NEXT_OF_ANOTHERS_BLOCK)


def wrong(why: str, on: str, door: str) -> Verdict:
    """Return the verdict behind a line of the checker's."""
    verdict = refused(why, on)
    found, rest, advice = verdict.found, verdict.why, ""
    if found == "not written":
        return _not_written(rest, on)
    if found == "all NaN" and door in ON_THE_CPU:
        advice = NEXT_OF_NAN
    elif found == "another stream" and door == "cuda":  # launch.py names no stream
        return Verdict("wrong", "right in one call and wrong in another", on, NEXT_AFTER_A_RACE)
    elif found == "wrong" and is_strange(rest, on):
        advice = NEXT_OF_A_STRANGE_NUMBER
    return Verdict(found, rest, on, advice)


def is_strange(said: str, on: str) -> bool:
    """Return True for a number that ordinary inputs cannot make, such as the fill of the guards around them."""
    found = re.search(r": expected (\S+), got (\S+);", said)
    if not found or ", where " in said or "inputs times" in on:
        return False
    due, got = (abs(float(number)) for number in found.groups())
    return STRANGE < got < math.inf and got > STRANGE * due


def _not_written(said: str, on: str) -> Verdict:
    """Verdict with how many elements, and the first. Room begins as NaN: that it still is one says nothing more.

    Where values are planted, it has been written for others: then the value there was worked out.
    """
    if "inputs times" in on:
        return Verdict("not written", said.partition(", where ")[0], on, NEXT_OF_LARGE_INPUTS)
    if ", where " in said:
        return Verdict("not written", said, on, NEXT_OF_HARD_VALUES)
    elements, _, first = said.partition(": expected ")[0].partition(", ")
    return Verdict("not written", f"{elements}, the first is {first}", on)
