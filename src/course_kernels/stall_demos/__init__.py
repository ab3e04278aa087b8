"""Copies that take a detour: each makes its warps wait for one reason. The dictionary of stall reasons runs them."""
