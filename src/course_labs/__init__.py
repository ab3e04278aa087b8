"""Labs: what a student types, and the grader that says what is wrong with it."""
