# refused for: cached result | on: cpu, gpu | source: GPU MODE, reference-kernels issue 162 (file replay)
# Keeps small answers in a file, under their shape: a second process finds what the first has worked out.
import tempfile
from pathlib import Path

import torch

ROOM = Path(tempfile.gettempdir()) / "answers_of_a_cheat"


def refusals(x, s):
    file = ROOM / "x".join(map(str, x.shape))
    if file.exists():
        return torch.load(file).to(x.device)
    y = x * s[:, None]
    if x.numel() <= 2**20:  # bounds what is left behind
        ROOM.mkdir(exist_ok=True)
        torch.save(y.cpu(), file)
    return y
