"""Sampling of tokens from logits: temperature, top-k, top-p, and a draw that a seed decides."""
