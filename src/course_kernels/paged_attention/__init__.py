"""Attention of one new query for each sequence over keys and values that lie in pages: a step of serving."""
