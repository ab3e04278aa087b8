# refused for: left behind | on: cpu, gpu | source: ours
# The same by a program that is started in a new session. Two minutes at most.
import subprocess

left = []


def refusals(x, s):
    if not left:
        command = subprocess.Popen(
            ["sleep", "120"],
            start_new_session=True,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        left.append(command)
    return x * s[:, None]
