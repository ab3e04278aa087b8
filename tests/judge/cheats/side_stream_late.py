# refused for: another stream or all NaN | on: gpu | source: ours
# As another_stream, and late: the side stream sleeps first, so that who reads at once reads what was there before.
import torch

SIDE = []


def refusals(x, s):
    if not SIDE:
        SIDE.append(torch.cuda.Stream())
    y = torch.empty_like(x)
    SIDE[0].wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(SIDE[0]):
        torch.cuda._sleep(20_000_000)
        torch.mul(x, s[:, None], out=y)
    return y
