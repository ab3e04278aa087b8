"""Attention, forward, in the shapes of training and serving: packed sequences, shared heads, masks by position."""
