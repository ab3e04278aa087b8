"""What the exercise of the page on the whole road comes to."""

MULTIPLIES, CHAIN, ATTENTION = 60, 30, 10  # minutes of a hundred

ANSWERS = {
    "Where to spend a week": [MULTIPLIES // 10, CHAIN // 2, ATTENTION * 4 // 5],
}
