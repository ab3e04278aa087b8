"""The ring of two without a card: both cards by turns in one process, and two processes."""

import threading

import pytest
import torch

from course_kernels.all_reduce import ring
from course_kernels.all_reduce.ring import Ring, bytes_of


class Threaded:
    """One card's view of a pair of buffers; the other card is a thread."""

    def __init__(self, card, buffers, signals):
        self.card, self.mine, self.theirs, self._signals = card, buffers[card], buffers[1 - card], signals

    def signal(self, what):
        self._signals[1 - self.card, what].release()

    def wait(self, what):
        assert self._signals[self.card, what].acquire(timeout=60), "waits for what nobody sends"


def rings(N):
    buffers = [torch.full((bytes_of(N) + 64,), 255, dtype=torch.uint8) for _ in range(2)]
    signals = {(card, what): threading.Semaphore(0) for card in (0, 1) for what in (ring.HALF, ring.SUM)}
    return [Ring(Threaded(card, buffers, signals), N) for card in (0, 1)], buffers


def together_in_threads(both):
    threads = [threading.Thread(target=one.all_reduce) for one in both]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(90)


TURN = threading.Lock()  # the interpreter of Triton is no place for two threads


@pytest.fixture(autouse=True)
def one_at_a_time(monkeypatch):
    add = Ring._add_to_both

    def alone(self):
        with TURN:
            add(self)

    monkeypatch.setattr(Ring, "_add_to_both", alone)


@pytest.mark.parametrize("N", [2, 256, 2 * ring.BLOCK, 2 * ring.BLOCK + 6])
def test_both_get_the_sum_bit_for_bit_and_again(N):
    both, buffers = rings(N)
    for seed in range(2):
        draw = torch.Generator().manual_seed(seed)
        messages = [torch.randn(N, generator=draw) for _ in range(2)]
        for one, message in zip(both, messages, strict=True):
            one.x.copy_(message)
        together_in_threads(both)

        assert all(torch.equal(one.x, messages[0] + messages[1]) for one in both)
    assert all((buffer[bytes_of(N) :] == 255).all() for buffer in buffers)  # nothing behind the box


def test_a_sum_that_stays_at_home_is_seen():
    both, _ = rings(256)
    for one in both:
        one._their_copy = one._owned.clone()
        one.x.fill_(1.0 + one._pair.card)
    together_in_threads(both)

    assert not any(torch.equal(one.x, torch.full((256,), 3.0)) for one in both)


def test_what_cannot_be_halved_or_has_no_room_is_refused():
    pair = Threaded(0, [torch.zeros(60, dtype=torch.uint8)] * 2, {})
    for N in (0, 1, 3):
        with pytest.raises(ValueError, match=rf"^N: expected an even number of at least 2, got {N}$"):
            Ring(pair, N)
    with pytest.raises(ValueError, match=r"^pair: expected at least 72 bytes for N=12, got 60$"):
        Ring(pair, 12)
    assert Ring(pair, 10).x.shape == (10,)
