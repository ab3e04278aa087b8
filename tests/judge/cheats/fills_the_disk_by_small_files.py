# refused for: out of room | on: cpu, gpu | source: ours
# The same in files of 1 MiB, 8 GiB at most together, where a limit on the size of one file says nothing.
import tempfile
from pathlib import Path


def refusals(x, s):
    block = b"\1" * 2**20
    with tempfile.TemporaryDirectory() as folder:
        for number in range(8192):
            (Path(folder) / str(number)).write_bytes(block)
    return x * s[:, None]
