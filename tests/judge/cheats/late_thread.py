# refused for: all NaN or not written or wrong | on: cpu, gpu | source: DeepReinforce; Wafer
# Returns at once; a second thread does the work a moment later, before a slow checker looks. What it has not written
# yet is NaN: numbers left there by others would be refused for a reason of their own, where x holds an infinity.
import threading
import time

import torch


def refusals(x, s):
    y = torch.full_like(x, torch.nan)

    def work():
        time.sleep(0.002)
        torch.mul(x, s[:, None], out=y)

    threading.Thread(target=work).start()
    return y
