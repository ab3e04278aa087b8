"""Harness of machines that write kernels: propose, compile, check, profile, and propose again.

It stands on the judge and the profiler. What was proposed is text: only their workers run it.
"""
