"""Everything to print for a session: its pages, its drawings, and the command that makes them PDFs."""
