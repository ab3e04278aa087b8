"""Neighbouring threads read elements that lie a stride apart."""
