"""Shared part of the grader and of the workers that run students' files."""
