"""Texts judged side by side, on this machine or on a Dask cluster, each by a process that is warm."""
