"""Norm, merged projection and rotary embedding of a step of decoding, keys and values written into the cache."""
