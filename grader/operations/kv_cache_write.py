"""Rows into a cache in pages."""
