"""Attention of one token over a list of latents, of which every head makes its own keys and values."""
