# refused for: wrong | on: cpu, gpu | source: GPU MODE, kernelguard (frames of the caller); ours
# Walks up its callers and puts another torch and another time into their globals; the answer is zeros.
import sys
import time
import types

import torch


def copied(module, **changed):
    copy = types.ModuleType(module.__name__)
    copy.__dict__.update(vars(module))
    copy.__dict__.update(changed)
    return copy


YES = copied(
    torch,
    allclose=lambda *args, **options: True,
    equal=lambda *args, **options: True,
    sub=lambda a, b, **options: a * 0,
)
STILL = copied(time, perf_counter=lambda: 0.0, monotonic=lambda: 0.0, perf_counter_ns=lambda: 0)


def refusals(x, s):
    answer = torch.zeros_like(x)
    frame = sys._getframe(1)
    while frame is not None:
        for name, value in list(frame.f_globals.items()):
            if value is torch or value is time:
                frame.f_globals[name] = YES if value is torch else STILL
        frame = frame.f_back
    return answer
