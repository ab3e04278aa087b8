"""The built site as a folder that any static host takes, and what is missing before somebody puts it there."""
