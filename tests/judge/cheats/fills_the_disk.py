# refused for: out of room | on: cpu, gpu | source: ours
# Writes 8 GiB at most into one file, without holes, and removes it: whoever shares the disk has none meanwhile.
import tempfile


def refusals(x, s):
    block = b"\1" * 2**24
    with tempfile.TemporaryFile() as file:
        for _ in range(512):
            file.write(block)
        file.flush()
    return x * s[:, None]
