"""The course as a whole, and what turns it into the site: every page rendered, the ledger, MkDocs, the last look."""
