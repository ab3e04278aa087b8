# refused for: wrong | on: cpu, gpu | source: ours
# Reads what its parent has sent and not yet been asked for, from every pipe: the next inputs, or the truth.
import os
import select
import stat

import torch


def refusals(x, s):
    for fd in range(64):
        try:
            mode = os.fstat(fd).st_mode
            if stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode):
                while select.select([fd], [], [], 0)[0] and os.read(fd, 2**20):
                    pass
        except (OSError, ValueError):
            continue
    return torch.zeros_like(x)
