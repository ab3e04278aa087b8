"""What the exercise of the page on the CUDA model comes to."""

ORDER, SHORT, LONG, DISHES = 7, 4, 20, 100  # minutes, and how many

ANSWERS = {
    "Who waits?": [DISHES * ORDER + SHORT, ORDER + DISHES * LONG],
}
