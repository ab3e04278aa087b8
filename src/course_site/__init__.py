"""What turns pages and their records into the site; knows nothing about any one kernel."""
