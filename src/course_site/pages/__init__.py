"""What a page is made of: cells, blocks, headings, plain text, and the words and sources it leans on."""
