"""Mathematics: TeX between dollars becomes MathML while the site is built, so that no script has to draw it."""

from __future__ import annotations

import functools


class FormulaError(ValueError):
    """A formula that cannot be drawn: one line, with the formula and what is wrong with it."""


@functools.lru_cache(maxsize=1024)
def mathml(tex: str, *, displayed: bool) -> str:
    """Return a formula as MathML Core, which browsers draw and read aloud by themselves.

    Args:
        tex: without its dollars.
        displayed: it stands on a line of its own.
    Raises:
        FormulaError: see the class.
    """
    from math_core import LatexError, LatexToMathML  # pages without a formula do not need it

    try:
        drawn = LatexToMathML(fancy_error=False).convert_with_local_state(tex, displaystyle=displayed)
    except LatexError as error:
        place, _, what = " ".join(str(error).split()).partition(": ")
        raise FormulaError(f"the formula ${tex}$ cannot be drawn, at its character {place}: {what}") from None
    return f'<div class="formula">{drawn}</div>' if displayed else drawn
