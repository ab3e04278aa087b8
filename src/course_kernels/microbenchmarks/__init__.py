"""Latency and bandwidth of every level of memory, and who runs where, as the card itself tells it."""
