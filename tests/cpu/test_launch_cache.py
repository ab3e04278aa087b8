"""A product that comes again is only asked for: no shape is looked at twice, and every refusal stays."""

import re
from types import SimpleNamespace

import pytest
import torch

from course_kernels.gemm import by_tma, k12_stored, k14_tuned, launch_cache, plans
from course_kernels.gemm.plans import SHAPES, Plan

KERNELS = [k12_stored, k14_tuned]


class Card:
    """Stands in for `prepare` and `tensor_map`: keeps what is written down, and how often each was launched."""

    def __init__(self):
        self.prepared, self.launches, self.where, self.error = [], [], (-1, 7), 0

    def prepare(self, path, name, **how):
        self.prepared.append(name)

        def written(grid, *args):
            def go():
                self.launches.append((name, grid, args, self.where))
                return self.error

            return SimpleNamespace(go=go, of=SimpleNamespace(refused=self.refused), grid=grid)

        return SimpleNamespace(written=written, current=lambda: self.where)

    @staticmethod
    def refused(error, grid):
        return RuntimeError(f"error {error}, grid {grid}")

    @staticmethod
    def tensor_map(x, box):
        return (x.data_ptr(), tuple(x.shape), box)


@pytest.fixture
def card(monkeypatch):
    card = Card()
    monkeypatch.setenv("TRITON_INTERPRET", "1")
    for module in (by_tma, plans):
        monkeypatch.setattr(module, "prepare", card.prepare)
        monkeypatch.setattr(module, "tensor_map", card.tensor_map)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: (9, 0))
    monkeypatch.setattr(
        torch.cuda, "get_device_properties", lambda device: SimpleNamespace(multi_processor_count=4)
    )

    def forget():
        launch_cache.forget()
        for kept in (by_tma._prepared, by_tma.multiprocessors, plans._tiles, plans._adding):
            kept.cache_clear()

    forget()
    yield card
    forget()


def factors(M=264, N=520, K=72, dtype=torch.bfloat16):
    return torch.zeros(M, K, dtype=dtype), torch.zeros(K, N, dtype=dtype)


def fails(*_, **__):
    raise AssertionError("looked at again")


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda k: k.__name__.rpartition(".")[2])
def test_what_comes_again_is_only_launched(card, monkeypatch, kernel):
    a, b = factors()
    room = torch.empty_strided((264, 520), (520, 1), dtype=a.dtype)
    monkeypatch.setattr(torch, "empty_strided", lambda *size, **how: room)
    first = kernel.gemm(a, b)
    for module in (by_tma, plans):
        monkeypatch.setattr(module, "sizes_of", fails)
        monkeypatch.setattr(module, "tensor_map", fails)
    second = kernel.gemm(a, b)

    assert first is second is room
    assert card.launches[0] == card.launches[1]
    assert len(card.prepared) == 1
    grid, maps = card.launches[0][1:3]
    assert grid == 4
    assert [m[0] for m in maps[:3]] == [a.data_ptr(), b.data_ptr(), room.data_ptr()]


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda k: k.__name__.rpartition(".")[2])
def test_other_addresses_streams_and_rooms_are_written_down_anew(card, kernel):
    a, b = factors()
    kept = [kernel.gemm(a, b), kernel.gemm(a.clone(), b), kernel.gemm(a, b.clone())]
    card.where = (-1, 8)
    kept.append(kernel.gemm(a, b))

    seen = [tuple(m[0] for m in args[:3]) + where for _, _, args, where in card.launches]
    assert len(set(seen)) == 4
    assert [s[2] for s in seen] == [c.data_ptr() for c in kept]
    assert len(card.prepared) == 1


def test_another_shape_layout_or_type_is_another_product(card):
    a, b = factors(264, 264, 264)
    k14_tuned.gemm(a, b)
    k14_tuned.gemm(a, b.t().contiguous().t())
    k14_tuned.gemm(a.half(), b.half())
    k14_tuned.gemm(a[:8], b)
    plan = Plan(SHAPES[0], group=1, splits=2, grid=4, switches=(("HINTS", 0),))
    k14_tuned.gemm(a, b, plan=plan)

    assert len(launch_cache._READY) == 5
    assert [name for name, *_ in card.launches] == ["gemm_tuned"] * 5 + ["add_parts"]


def test_a_product_that_was_made_ready_still_refuses(card):
    a, b = factors(8, 24, 16)
    shifted = torch.zeros(8 * 16 + 1, dtype=torch.bfloat16)[1:].view(8, 16)
    for kernel in KERNELS:
        kernel.gemm(a, b)
        for wrong, line in (
            ((shifted, b), "a: expected an address divisible by 16, got one 2 bytes past it"),
            ((a.t().contiguous().t(), b), "a: expected contiguous (M, K), got strides (1, 8)"),
            ((a, b[:8]), "b: expected (K, N) with K=16, got (8, 24)"),
        ):
            with pytest.raises(ValueError, match=re.escape(line)):
                kernel.gemm(*wrong)
        with pytest.raises(TypeError, match=re.escape("b: expected a torch.Tensor, got list")):
            kernel.gemm(a, b.tolist())
    assert len(card.launches) == 2


def test_what_the_driver_refuses_is_said(card):
    card.error = 700
    with pytest.raises(RuntimeError, match="error 700, grid 4"):
        k14_tuned.gemm(*factors())


def test_what_is_kept_has_an_end(card, monkeypatch):
    monkeypatch.setattr(launch_cache, "KEPT", 3)
    a, b = factors(8, 8, 8)
    rooms = [k14_tuned.gemm(a, b) for _ in range(8)]
    for M in range(1, 8):
        k14_tuned.gemm(torch.zeros(M, 8, dtype=a.dtype), b)

    assert len(card.launches) == len(rooms) + 7
    assert len(launch_cache._READY) <= 3
    assert all(len(ready._written) <= 3 for ready in launch_cache._READY.values())
