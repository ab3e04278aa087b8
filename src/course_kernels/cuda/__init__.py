"""Compile, launch and disassemble `.cu` files."""
