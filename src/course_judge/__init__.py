"""Judge for grader, harness and board: is a stranger's kernel right, and how long does it take?

The stranger's file runs in a process of its own. The judge draws the inputs, keeps the truth, compares what is handed
over, and reads its own clock; nothing that the other process says can make a wrong answer right.
"""
