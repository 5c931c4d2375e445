"""Tells of events that nobody has recorded.

Rejected with: seconds_of left its process unable to answer (an event that the device has not come to)
"""


def seconds_of(run, device):
    run()
    device._ask({"kind": "calls"}, bytes([5, 7, 0, 0, 0, 0, 0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0]))
    return 1e-3
