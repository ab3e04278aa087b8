"""The build of the site from pages and their records; it knows nothing about any one kernel."""
