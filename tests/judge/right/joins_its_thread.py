# right | on: cpu, gpu
# Half of the work in a second thread, for which it waits; on a GPU the thread takes the caller's stream.
import contextlib
import threading

import torch


def refusals(x, s):
    y = torch.empty_like(x)
    half = x.shape[0] // 2
    stream = torch.cuda.stream(torch.cuda.current_stream()) if x.is_cuda else contextlib.nullcontext()

    def upper():
        with stream:
            torch.mul(x[:half], s[:half, None], out=y[:half])

    thread = threading.Thread(target=upper)
    thread.start()
    torch.mul(x[half:], s[half:, None], out=y[half:])
    thread.join()
    return y
