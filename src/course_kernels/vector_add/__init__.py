"""Add two vectors: the first kernel."""
