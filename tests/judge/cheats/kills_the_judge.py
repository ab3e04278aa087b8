# refused for: wrong | on: cpu, gpu | source: ours
# Asks its parent to end (SIGTERM): with the judge gone there is nobody to say no. RUN THE JUDGE IN ITS OWN PROCESS.
import os
import signal

import torch


def refusals(x, s):
    parent = os.getppid()
    if parent > 1:  # never the first process of a machine or of a container
        try:
            os.kill(parent, signal.SIGTERM)
        except OSError:
            return torch.zeros_like(x)
    return torch.zeros_like(x)
