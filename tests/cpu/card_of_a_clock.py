"""A card whose time goes on by what is launched, and a host whose time goes on by sleeping and waiting."""

import torch

from course_kernels.measure import bursts


class Card:
    """Stands in for torch's events, the host's clock and the card's sensors in `measure.bursts`."""

    def __init__(self, monkeypatch):
        self.card_us, self.host_s, self.calls = 0.0, 0.0, []
        monkeypatch.setattr(torch.cuda, "Event", self.event)
        monkeypatch.setattr(torch.cuda, "synchronize", self.synchronize)
        monkeypatch.setattr(torch.cuda, "_sleep", self.hold)
        monkeypatch.setattr(bursts.time, "sleep", self.sleep)
        monkeypatch.setattr(bursts.time, "perf_counter", lambda: self.host_s)
        monkeypatch.setattr(bursts, "snapshot", self.snapshot)

    def event(self, enable_timing):
        card = self

        class Event:
            def record(self):
                self.at = card.now()

            def elapsed_time(self, other):
                return (other.at - self.at) / 1e3

            def synchronize(self):
                card.host_s = max(card.host_s, self.at / 1e6)

        return Event()

    def now(self):
        """When the next thing that is enqueued begins: the card waits for the host, where it is ahead of it."""
        self.card_us = max(self.card_us, self.host_s * 1e6)
        return self.card_us

    def hold(self, cycles):
        self.card_us = self.now() + cycles / 2000

    def synchronize(self):
        self.host_s = max(self.host_s, self.card_us / 1e6)

    def sleep(self, seconds):
        self.host_s += seconds
        self.card_us = max(self.card_us, self.host_s * 1e6)

    def snapshot(self):
        """What the sensors tell: the last one at work heats the card."""
        return {"sm_mhz": 1500, "power_w": 700.0, "temperature_c": None, "throttle": ["power limit"]}

    def kernel(self, name, us, first_us=None, answer=lambda a, b: a, host_us=1.0):
        """Takes `us`, and `first_us` where it is the first after another one; a launch costs the host `host_us`."""

        def multiply(a, b):
            last = self.calls[-1] if self.calls else None
            self.calls.append(name)
            self.host_s += host_us / 1e6
            self.card_us = self.now() + (us if last == name or first_us is None else first_us)
            return answer(a, b)

        return multiply
