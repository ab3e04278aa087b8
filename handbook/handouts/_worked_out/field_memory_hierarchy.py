"""What the exercise of the page on the memory hierarchy comes to."""

THREADS = 2048
NARROW, WIDE = THREADS * 4 / 1024, THREADS * 16 / 1024  # KiB

ANSWERS = {"Hide the trip": [NARROW, WIDE]}
