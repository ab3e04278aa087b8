"""Partition of a stream of weights over the blocks of a grid."""

from __future__ import annotations


def shared_out(tiles: int, shares: int, most_warps: int, multiprocessors: int) -> tuple[int, int, int]:
    """Return what keeps most of the card busy.

    A block for each multiprocessor, and K cut where a block cannot hold it all.

    Args:
        tiles: of rows of weights; a block takes one, and then the one that lies a grid further.
        shares: of K, one for each warp.
        most_warps: of a block.
        multiprocessors: of the card.
    Returns:
        Blocks along N and along K, and warps of each.
    """
    least = -(-shares // most_warps)
    best, found = 0.0, None
    for splits in range(least, max(min(2 * least, shares, multiprocessors), least) + 1):
        warps = -(-shares // splits)
        if -(-shares // warps) != splits:
            continue  # one of them would have nothing to do
        blocks = max(min(multiprocessors // splits, tiles), 1)
        rounds = -(-tiles // blocks)
        busy = tiles * shares / (rounds * multiprocessors * warps)
        if busy > 1.02 * best:  # a further part must pay for being added
            best, found = busy, (blocks, splits, warps)
    assert found is not None
    return found
