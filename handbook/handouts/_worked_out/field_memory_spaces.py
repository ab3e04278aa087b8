"""What the exercise of the page on memory spaces comes to."""

THREADS, FLOATS, BLOCKS = 256, 16, 8
OF_A_BLOCK = THREADS * FLOATS * 4 / 1024  # KiB
OF_AN_SM = BLOCKS * OF_A_BLOCK
LEFT = 256 - 200  # KiB

ANSWERS = {"Private is not near": [OF_A_BLOCK, OF_AN_SM, LEFT]}
