"""Kernels, problems and the way they are measured: what students read."""

import os

if os.path.isfile(os.environ.get("COURSE_WATCH", "")):
    # A page is being recorded and this process is a child of it: it tells which files it reads.
    import runpy

    runpy.run_path(os.environ["COURSE_WATCH"])
