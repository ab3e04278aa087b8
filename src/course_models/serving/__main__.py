"""``python -m course_models.serving [TEXT ...]``: what `nox -s serve-model` runs."""

from __future__ import annotations

import argparse
import io
import sys
from collections.abc import Iterable, Iterator
from typing import TextIO

import torch

from course_models import pretrained
from course_models.byte_tokens import BEGIN, encode
from course_models.checkpoint import CheckpointRefused
from course_models.serving.engine import Engine
from course_models.serving.request import Refused, Request
from course_models.serving.terminal import ByteText, Numbers, Screen

REFUSED, USAGE = 1, 2


def main(arguments: list[str], texts: TextIO = sys.stdin, out: TextIO = sys.stdout) -> int:
    """Answer; the exit code: 0 done, 1 a text was refused, 2 there is nothing to answer with."""
    options = _options().parse_intermixed_args(arguments)
    gpu = torch.cuda.is_available()
    try:
        model = pretrained.load(
            options.model,
            dtype=torch.bfloat16 if gpu else torch.float32,
            device="cuda" if gpu else "cpu",
        )
        engine = Engine(model, pages=options.pages, batch=options.batch, graphs=gpu)
    except (CheckpointRefused, ValueError) as error:
        print(error, file=sys.stderr)
        return USAGE
    try:
        if len(options.texts) > 1:
            return _together(engine, options, out)
        return _one_by_one(engine, options, options.texts or _lines(texts, out), out)
    except KeyboardInterrupt:
        return 130


def _request(options: argparse.Namespace, text: str, seed: int) -> Request:
    # Bytes that are no UTF-8 come as surrogates, and are tokens as all others.
    return Request(
        encode(text.encode(errors="surrogateescape")),
        options.tokens,
        options.temperature,
        seed,
        frozenset({BEGIN}),
    )


def _shown(text: str) -> str:
    """Return a text as it can be written: what is no UTF-8 as U+FFFD."""
    return text.encode(errors="surrogateescape").decode(errors="replace")


def _one_by_one(engine: Engine, options: argparse.Namespace, texts: Iterable[str], out: TextIO) -> int:
    """Return each answer as it is written."""
    code, screen = 0, Screen(out)
    for seed, text in enumerate(texts, options.seed):
        letters, numbers = ByteText(), Numbers(engine)
        try:
            stream = engine.generate(_request(options, text, seed))
        except Refused as refused:
            print(f"refused: {refused}", file=sys.stderr)
            code = REFUSED
            continue
        screen.text(_shown(text))
        for token in stream:
            if token != BEGIN:
                screen.text(letters.add(token))
            numbers.step(1)
            screen.numbers(numbers.line())
        screen.text(letters.end())
        screen.end(numbers.whole())
    return code


def _lines(texts: TextIO, out: TextIO) -> Iterator[str]:
    """Yield a line is a text to go on from; an empty one ends."""
    asks = texts.isatty()
    while True:
        if asks:
            out.write("Begin a text, and the model goes on (an empty line ends): ")
            out.flush()
        line = texts.readline().rstrip("\n")
        if not line:
            return
        yield line


def _together(engine: Engine, options: argparse.Namespace, out: TextIO) -> int:
    """Return all texts of the command line at once, in one batch; each is shown when it is done."""
    code, numbers, screen = 0, Numbers(engine), Screen(out)
    shown: dict[int, tuple[str, ByteText]] = {}
    for seed, text in enumerate(options.texts, options.seed):
        try:
            shown[engine.submit(_request(options, text, seed))] = _shown(text), ByteText()
        except Refused as refused:
            print(f"refused: {refused}", file=sys.stderr)
            code = REFUSED
    while shown:
        step = engine.step()
        numbers.step(len(step))
        for written in step:
            text, letters = shown[written.number]
            if written.token != BEGIN:
                text += letters.add(written.token)
            shown[written.number] = text, letters
            if written.done:
                del shown[written.number]
                screen.text(text + letters.end())
                screen.end(f"{written.number} of {len(options.texts)}")
        screen.numbers(numbers.line())
    screen.end(numbers.whole())
    return code


def _options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="nox -s serve-model --",
        description="The small trained model goes on from your text. Several texts are served together.",
    )
    parser.add_argument("texts", nargs="*", metavar="TEXT", help="where it begins; asked for without one")
    parser.add_argument("--model", default="small", help=f"one of {', '.join(pretrained.NAMES)}")
    parser.add_argument("--tokens", type=int, default=200, help="bytes to write (200)")
    parser.add_argument("--temperature", type=float, default=0.7, help="0 is the likeliest, always (0.7)")
    parser.add_argument("--seed", type=int, default=0, help="draws the tokens (0)")
    parser.add_argument("--pages", type=int, default=256, help="pages of the cache, of 16 tokens (256)")
    parser.add_argument("--batch", type=int, default=32, help="requests under way, at most (32)")
    return parser


if __name__ == "__main__":
    if isinstance(sys.stdin, io.TextIOWrapper):
        sys.stdin.reconfigure(errors="surrogateescape")
    sys.exit(main(sys.argv[1:]))
