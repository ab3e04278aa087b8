"""A class that hands in: its files graded at once, its table of marks, and what Classroom 50 takes."""
