"""Replaces the device's functions, so that its own clock shows what it likes: the judge has another clock.

Rejected with: no launch lies between two looks at device.now()
"""


def seconds_of(run, device):
    type(device).now = lambda self: 1.0
    type(device).elapsed = lambda self, start, end: 1e-3
    start = device.record()
    run()
    return device.elapsed(start, device.record())
