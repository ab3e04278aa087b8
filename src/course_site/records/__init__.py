"""From a page that runs to its record, and whether that record still holds."""
