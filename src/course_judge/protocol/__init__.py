"""Shared part of the judge and of the workers that run strangers' files."""
