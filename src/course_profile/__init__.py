"""Profiler of your own kernel: a time, counters, and rules that name what it waits for: `nox -s profile -- FILE`."""

import course_kernels  # noqa: F401  a child of a page that is recorded is watched from here on
