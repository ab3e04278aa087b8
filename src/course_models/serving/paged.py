"""The model over a cache in pages: tokens of many requests side by side, each with a block table of its own.

Keys and values of a layer lie in (PAGES, KV, PAGE, D). B is the number of rows, each a token that looks at what stands
before it; T the tokens of a step, H the query heads, KV the heads of keys and values, D the numbers of a head.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from course_models.model import Layer, Model, rope_tables
from course_models.operators import PLAIN
from course_models.serving.scheduler import Share

SCRATCH = 0  # the page that nobody is given: rows of a graph that stand for nobody write there

# Attention of one token in each row: (q, k_pages, v_pages, table, lengths) -> (B, H, D).
PagedAttention = Callable[[Tensor, Tensor, Tensor, Tensor, Tensor], Tensor]


def gather(pages: Tensor, table: Tensor) -> Tensor:
    """Return what block tables list, one page behind the other.

    Args:
        pages: (PAGES, KV, PAGE, D).
        table: (B, n), numbers of pages.
    Returns:
        (B, KV, n * PAGE, D), a copy.
    """
    # region gather
    B, n = table.shape
    _, KV, PAGE, D = pages.shape
    return pages[table].transpose(1, 2).reshape(B, KV, n * PAGE, D)
    # endregion


def paged_decode_attention(
    q: Tensor, k_pages: Tensor, v_pages: Tensor, table: Tensor, lengths: Tensor
) -> Tensor:
    """Attention over pages in plain PyTorch: the pages are copied together first, all that the table has room for.

    Args:
        q: (B, H, D).
        k_pages, v_pages: (PAGES, KV, PAGE, D), finite everywhere.
        table: (B, n) int32, the pages of each row; past its length any page.
        lengths: (B,) int32, tokens that each row looks at, itself among them.
    Returns:
        (B, H, D).
    """
    return PLAIN.decode_attention(q, gather(k_pages, table), gather(v_pages, table), lengths)


@dataclass(frozen=True)
class Piece:
    """Tokens `begin` to `end` of a step are a piece of one request, which holds `length` tokens then."""

    begin: int
    end: int
    table: Tensor  # (1, n), its pages
    length: int


class PagedModel:
    """A model and its cache in pages.

    Attributes:
        model: what computes.
        keys, values: (layers, PAGES, KV, PAGE, D); page 0 is nobody's.
        attention: by which each row looks at its pages, such as one of our kernels.
    """

    def __init__(
        self, model: Model, pages: int, page_tokens: int, attention: PagedAttention = paged_decode_attention
    ) -> None:
        c = model.config
        self.model, self.attention, self.page_tokens = model, attention, page_tokens
        shape = (c.layers, 1 + pages, c.kv_heads, page_tokens, c.head_dim)
        # Zeros and not what lay there: a weight of zero times NaN is NaN.
        self.keys = torch.zeros(shape, dtype=model.dtype, device=model.device)
        self.values = torch.zeros(shape, dtype=model.dtype, device=model.device)
        kind = torch.promote_types(model.dtype, torch.float32)
        self._cos, self._sin = rope_tables(c, kind, model.device)

    @torch.no_grad()
    def step(self, shares: Sequence[Share]) -> Tensor:
        """Compute the next tokens of several requests at once.

        Args:
            shares: those with one token first.
        Returns:
            (S, vocab): the logits behind each share that ends, in their order.
        """
        tokens: list[int] = []
        positions: list[int] = []
        pages: list[int] = []
        ends: list[int] = []
        decoding: list[Share] = []
        pieces: list[Piece] = []
        for share in shares:
            one, first = share.running, share.running.computed
            last = first + share.tokens
            if share.tokens == 1:
                decoding.append(share)
            else:
                # Sent to the device here, once for all layers: it waits until the device has done what it has to do.
                mine = self._numbers(one.pages)[None]
                pieces.append(Piece(len(tokens), len(tokens) + share.tokens, mine, last))
            tokens += one.tokens[first:last]
            positions += range(first, last)
            pages += [one.pages[position // self.page_tokens] for position in range(first, last)]
            if share.ends:
                ends.append(len(tokens) - 1)
        table, lengths = self.tables(decoding)
        numbers = self._numbers(tokens), self._numbers(positions), self._numbers(pages)
        x = self._layers(*numbers, table, lengths, pieces)
        return self._logits(x[0, self._numbers(ends)])

    @torch.no_grad()
    def rows(self, token: Tensor, table: Tensor, lengths: Tensor) -> Tensor:
        """Return one token in each row; nothing waits for the device, so that a CUDA graph may hold it.

        The tokens of a prompt may be rows, too, each one longer than the one before it: a layer writes the keys and
        values of all rows before any of them looks.

        Args:
            token: (B,) int64.
            table: (B, n) int32, the block tables.
            lengths: (B,) int32, tokens that each row looks at, itself among them.
        Returns:
            (B, vocab).
        """
        position = lengths.long() - 1
        page = table.gather(1, position[:, None] // self.page_tokens)[:, 0].long()
        return self._logits(self._layers(token, position, page, table, lengths, ())[0])

    def tables(self, shares: Sequence[Share]) -> tuple[Tensor, Tensor]:
        """Return a row for each token of the shares: block tables (B, n), filled up with page 0, and lengths (B,).

        Int32.
        """
        width = max((len(share.running.pages) for share in shares), default=0)
        table: list[list[int]] = []
        lengths: list[int] = []
        for share in shares:
            pages, computed = share.running.pages, share.running.computed
            table += [pages + [SCRATCH] * (width - len(pages))] * share.tokens
            lengths += range(computed + 1, computed + share.tokens + 1)
        device = self.model.device
        return (
            torch.tensor(table, dtype=torch.int32, device=device).view(len(table), width),
            torch.tensor(lengths, dtype=torch.int32, device=device),
        )

    def _numbers(self, found: Sequence[int]) -> Tensor:
        return torch.tensor(found, dtype=torch.int64, device=self.model.device)

    def _layers(
        self,
        tokens: Tensor,
        positions: Tensor,
        pages: Tensor,
        table: Tensor,
        lengths: Tensor,
        pieces: Sequence[Piece],
    ) -> Tensor:
        """Return the residual stream behind the last layer, (1, T, width); the first B tokens are rows."""
        model, places = self.model, positions % self.page_tokens
        cos, sin = (turns[positions][None, None] for turns in (self._cos, self._sin))
        x = model.embedding[tokens][None]
        for layer, keys, values in zip(model.layers, self.keys, self.values, strict=True):
            x = self._layer(layer, x, cos, sin, keys, values, (pages, places), table, lengths, pieces)
        return x

    def _layer(
        self,
        layer: Layer,
        x: Tensor,
        cos: Tensor,
        sin: Tensor,
        keys: Tensor,
        values: Tensor,
        slots: tuple[Tensor, Tensor],
        table: Tensor,
        lengths: Tensor,
        pieces: Sequence[Piece],
    ) -> Tensor:
        ops, B = self.model.operators, len(lengths)
        # region layer
        q, k, v = layer.queries_keys_values(ops, x, cos, sin)  # (1, H or KV, T, D)
        pages, places = slots
        keys[pages, :, places], values[pages, :, places] = k[0].transpose(0, 1), v[0].transpose(0, 1)
        attended = torch.empty_like(q)
        if B:
            queries = q[0, :, :B].transpose(0, 1)  # (B, H, D)
            attended[0, :, :B] = self.attention(queries, keys, values, table, lengths).transpose(0, 1)
        for piece in pieces:
            k, v = (gather(cache, piece.table)[:, :, : piece.length] for cache in (keys, values))
            here = slice(piece.begin, piece.end)
            attended[:, :, here] = ops.prefill_attention(q[:, :, here], k, v)
        return layer.add_block(ops, layer.add_attention(ops, x, attended))
        # endregion

    def _logits(self, x: Tensor) -> Tensor:
        """(S, width) to (S, vocab)."""
        model, ops = self.model, self.model.operators
        head = model.embedding if model.head is None else model.head
        return ops.linear(ops.rms_norm(x, model.norm, model.config.norm_eps), head)
