"""Finds out what this machine can judge."""
