"""Kernels that cheat, one for every refusal of the measuring code: none of them may ever get a number."""
