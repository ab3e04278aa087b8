"""The capstone, you versus the machine: its tasks, its dated forms, the check of an entry, a board and a certificate."""
