"""What a process loads before it is copied for every stranger, beyond what a reader's own does.

A reader's process runs one file, so it loads all that once; a run of the tests has a thousand files. As readers have
them the judge and the grader are tried by their commands, with a file in Triton each.
"""

MORE = (
    "triton",  # by itself first, as it decides whether kernels are interpreted
    "triton.runtime.interpreter",
    "triton.experimental.gluon.nvidia.hopper",  # what the first launch asks for
    "course_judge.interpreter",
    "torch._dynamo",  # what the first operator asks for that is watched
)
