"""What holds a worker's process when the ones above it are gone."""

import os
import select
import signal
import subprocess
import sys

import pytest

# A process that starts another, which would wait for ever, with the end of a pipe that only that one holds.
STARTER = """
import os, sys, time
from course_judge.worker import confinement

if os.fork() == 0:
    confinement.end_with_parent()
    os.write(1, b"x")
    time.sleep(600)
time.sleep(600)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="Linux alone ends a process with its parent")
def test_a_worker_ends_with_its_starter_however_that_ended():
    reading, writing = os.pipe()
    starter = subprocess.Popen([sys.executable, "-c", STARTER], stdout=writing)
    os.close(writing)
    assert os.read(reading, 1) == b"x"
    starter.send_signal(signal.SIGKILL)
    starter.wait()

    try:
        assert select.select([reading], [], [], 10)[0]  # nobody holds the other end any more
        assert os.read(reading, 1) == b""
    finally:
        os.close(reading)
