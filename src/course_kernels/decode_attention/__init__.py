"""Attention of one new query for each sequence over the keys and values kept so far: a step of decoding."""
