"""Attention, forward."""
