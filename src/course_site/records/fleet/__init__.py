"""Fleet: the same pages and GPU tests, measured by many workers through Dask; one coordinator writes every record.

A worker has one GPU. It is told a task by its name, a page's path or a group of GPU tests, runs it from its own copy of
the tree, and sends back bytes with a checksum. Dask carries these and says who is there; who runs what, and how often,
is decided here (`places`, `coordinator`). Nothing of this folder is imported where one GPU is used.
"""
