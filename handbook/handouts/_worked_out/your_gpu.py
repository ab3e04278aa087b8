"""What the exercise on the reader's own GPU comes to."""

from math import gcd

BANKS = 32
ROW = BANKS + 2  # words of a row of the padded tile, as the reader changes it
TAKEN = BANKS // gcd(BANKS, ROW)  # banks in which the words of a column lie

ANSWERS = {"Break one, and see it refused": [BANKS, TAKEN]}
