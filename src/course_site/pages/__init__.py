"""The parts of a page: cells, blocks, headings, plain text, and the words and sources it leans on."""
