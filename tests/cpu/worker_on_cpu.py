"""A worker for a student's file whose CUDA C++ kernels run on the CPU."""

import re
import shutil
import tempfile
from pathlib import Path

import cuda_on_cpu

from course_judge.protocol.errors import Rejected
from course_labs.worker import file

if gxx := shutil.which("g++"):
    cuda_on_cpu.made_ready(gxx)  # before there is any student's process: each has it then


class Worker(file.Worker):
    """As a card would, thread by thread."""

    def cuda(self):
        """A function over tensors that runs the student's kernel."""
        text = self._file.read_text(encoding="utf-8")
        name = self.lab.entry[0]
        if self.lab.is_alone and not re.search(rf"\b{name}\(const", text):
            raise Rejected("function missing", "no such kernel")  # as the compiler's output would say
        launch = cuda_on_cpu.build(Path(tempfile.mkdtemp()), self._file, name)
        launch.constants = file.constants_of(self._file)
        return self.started(launch)
