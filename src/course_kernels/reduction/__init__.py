"""Add up a vector: many threads, one answer."""
