"""Answers a time of the right size, and measures nothing.

Rejected with: seconds_of returns 1 ms and never called run(): nothing was measured
"""


def seconds_of(run, device):
    return 1e-3
