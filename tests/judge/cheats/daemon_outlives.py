# refused for: left behind | on: cpu, gpu | source: ours
# As process_outlives, but forked twice and in a session of its own: no child of the judge, and no member of its group.
import os
import time

left = []


def refusals(x, s):
    if left:
        return x * s[:, None]
    left.append(True)
    first = os.fork()
    if first == 0:
        os.setsid()
        if os.fork() == 0:
            for fd in range(3):
                os.dup2(os.open(os.devnull, os.O_RDWR), fd)
            os.closerange(3, 4096)
            time.sleep(120)
        os._exit(0)
    os.waitpid(first, 0)
    return x * s[:, None]
