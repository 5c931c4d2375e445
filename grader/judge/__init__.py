"""Runs the stations of a submission and gives the verdict of each test."""
