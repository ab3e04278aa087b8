"""A few rows times a large matrix: the multiply of a step of decoding, which reads every weight for few tokens."""
