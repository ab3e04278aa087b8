"""Page to Markdown: one page after the other, and its blocks by family."""
