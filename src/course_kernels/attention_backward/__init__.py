"""Attention, backward."""
