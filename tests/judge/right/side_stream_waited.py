# right | on: gpu
# Works on a side stream that waits for the inputs, and lets the caller's stream wait for the answer.
import torch

SIDE = []


def refusals(x, s):
    if not SIDE:
        SIDE.append(torch.cuda.Stream())
    y = torch.empty_like(x)
    here = torch.cuda.current_stream()
    SIDE[0].wait_stream(here)
    with torch.cuda.stream(SIDE[0]):
        torch.mul(x, s[:, None], out=y)
    for tensor in (x, s, y):
        tensor.record_stream(SIDE[0])
    here.wait_stream(SIDE[0])
    return y
