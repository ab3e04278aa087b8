# refused for: wrong | on: cpu, gpu | source: ours
# Sends its inputs to somebody who could do the work elsewhere; whether or not there is an answer, it returns zeros.
import socket

import torch


def refusals(x, s):
    try:
        with socket.create_connection(("1.1.1.1", 80), timeout=2) as peer:
            peer.sendall(b"HEAD / HTTP/1.0\r\n\r\n")
            peer.recv(256)
    except OSError:
        pass
    return torch.zeros_like(x)
