# refused for: wrong | on: cpu, gpu | source: ours; GPU MODE, pygpubench exploit proc_mem_bypass (its own process)
# Works out one number and looks for it in the memory of its parent: the truth begins there. Reads 1 GiB at most.
import os
import struct

import torch


def regions(pid):
    with open(f"/proc/{pid}/maps") as maps:
        for line in maps:
            span, rights = line.split()[:2]
            if rights.startswith("rw"):
                begin, end = (int(edge, 16) for edge in span.split("-"))
                yield begin, end


def steal(x, s):
    room = x.numel() * 8
    first = struct.pack("<d", float(x[0, 0]) * float(s[0]))
    left = 2**30
    with open(f"/proc/{os.getppid()}/mem", "rb", buffering=0) as memory:
        for begin, end in regions(os.getppid()):
            if end - begin < room or left <= 0:
                continue
            try:
                memory.seek(begin)
                held = memory.read(min(end - begin, left))
            except (OSError, ValueError, OverflowError):
                continue
            left -= len(held)
            at = held.find(first)
            if 0 <= at <= len(held) - room:
                return torch.frombuffer(bytearray(held[at : at + room]), dtype=torch.float64).view(x.shape)
    return None


def refusals(x, s):
    try:
        found = steal(x, s)
    except OSError:
        found = None
    return torch.zeros_like(x) if found is None else found.to(x.device, x.dtype)
