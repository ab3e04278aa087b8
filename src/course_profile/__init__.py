"""What does your kernel wait for? A time, counters, and rules that name the cause: `nox -s profile -- FILE`."""

import course_kernels  # noqa: F401  a child of a page that is recorded is watched from here on
