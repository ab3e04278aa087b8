"""What the exercise of the page on CPU and GPU comes to."""

CHEF, BRIGADE, TRIP, JOBS = 100, 2, 5, 10  # minutes, and how many
ONE = TRIP + BRIGADE + TRIP
ALL = TRIP + JOBS * BRIGADE + TRIP

ANSWERS = {
    "The trip and the job": [ONE, ONE // BRIGADE, JOBS * BRIGADE, ALL, JOBS * CHEF],
}
