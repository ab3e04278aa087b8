"""The capstone, you versus the machine: tasks, dated forms, the check of an entry, a board and a certificate."""
