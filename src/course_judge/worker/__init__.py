"""The side of a stranger's file: nothing of it runs in the judge's own process, which starts it by name."""
