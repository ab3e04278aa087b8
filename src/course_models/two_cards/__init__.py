"""A model trained on two cards, in several ways: what each keeps, sends, and takes in time."""
