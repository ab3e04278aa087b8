# refused for: another stream or wrong | on: gpu | source: ours
# Works where it should and then leaves another stream current: the next event is recorded where nothing happens.
import torch

IDLE = []


def refusals(x, s):
    if not IDLE:
        IDLE.append((torch.cuda.current_stream(), torch.cuda.Stream()))
    work, idle = IDLE[0]
    with torch.cuda.stream(work):
        y = x * s[:, None]
    torch.cuda.set_stream(idle)
    return y
