# refused for: crashed | on: cpu, gpu | source: GPU MODE, pygpubench replace_torch; ours
# Leaves a file beside torch that a better name would run in every later process; stopped, it has no answer.
from pathlib import Path

import torch

PACKAGES = Path(torch.__file__).parent.parent


def refusals(x, s):
    for name in ("sitecustomize.py.cheated", "course.pth.cheated"):
        (PACKAGES / name).write_text(
            "import torch; torch.allclose = lambda *a, **k: True\n", encoding="utf-8"
        )
    return x * s[:, None]
