"""Session maps, a mentor's plan of every minute: read, checked, and shown in several views."""
