"""A linear layer of a step of decoding, and what stands around it: the norm before, and what its sums become behind."""
