# refused for: holds too much | works on 5000 numbers in one step, and 1024 is the most
import numpy as np


def vector_add(x, y):
    return x + y
