"""Sends an answer by itself before it returns another one: it is an answer all the same.

Rejected with: seconds_of returns 1 ms and never called run(): nothing was measured
"""


def seconds_of(run, device):
    device._ask({"kind": "measured", "error": None, "type": "float", "seconds": 1e-3}, b"")
    return 2e-3
