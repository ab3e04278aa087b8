"""Two cards at work together: a process for each, their clock, and what a check or a race of them found."""
