"""Labs: what a student types, and the grader that says what is wrong with it."""

import course_kernels  # noqa: F401  a child of a page that is recorded is watched from here on
