"""From a `.cu` file to a running kernel: compile, launch, disassemble."""
