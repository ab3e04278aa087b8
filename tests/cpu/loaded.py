"""What a process loads before it is copied for every stranger, beyond what a reader's own does.

There it is one file, or one in a while; a run of the tests has a thousand of them, and each would load it anew. The
judge's command and `nox -s grade` are tried as they are.
"""

MORE = (
    "triton",  # by itself first, as it decides whether kernels are interpreted
    "triton.runtime.interpreter",
    "triton.experimental.gluon.nvidia.hopper",  # what the first launch asks for
    "course_judge.interpreter",
    "torch._dynamo",  # what the first operator asks for that is watched
)
