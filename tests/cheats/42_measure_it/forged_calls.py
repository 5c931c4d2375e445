"""Sends a call that no device has, with a number beyond all events.

Rejected with: seconds_of left its process unable to answer (a call is none of a device)
"""


def seconds_of(run, device):
    device._ask({"kind": "calls"}, bytes([200]) + bytes([255] * 16))
    return 1e-3
