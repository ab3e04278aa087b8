"""The side of a student's file: nothing of it runs in the grader's own process, which starts it by name."""
