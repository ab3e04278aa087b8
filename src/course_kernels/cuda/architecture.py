"""The name of a card's instruction set."""

from __future__ import annotations

# Cards whose newest instructions exist only under a name of their own, which runs on no later card.
FEATURES_OF_ITS_OWN = {(9, 0): "a", (10, 0): "a", (10, 3): "a"}


def arch_of(capability: tuple[int, int]) -> str:
    """Return the compiler's name for a compute capability: (8, 6) is "sm_86", (9, 0) is "sm_90a".

    The `a` lets Hopper use its tensor-core instruction (wgmma) and data-centre Blackwell its own (tcgen05).
    """
    major, minor = capability
    return f"sm_{major}{minor}{FEATURES_OF_ITS_OWN.get((major, minor), '')}"
