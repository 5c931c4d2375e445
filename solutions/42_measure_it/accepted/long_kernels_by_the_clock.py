"""A kernel of several milliseconds by the host's clock: a launch and a synchronization are a small part of it, and so
is what a cache saves. Events for the others."""

import statistics

LONG = 8e-3


def seconds_of(run, device):
    run.draw_inputs()
    run()
    device.synchronize()
    began = device.now()
    while device.now() - began < 0.6:
        seconds = by_the_clock(run, device, 10)
    if seconds > LONG:
        return statistics.median(by_the_clock(run, device, 1) for _ in range(100))
    return statistics.median(by_events(run, device, 300))


def by_the_clock(run, device, launches):
    began = device.now()
    for _ in range(launches):
        run()
    device.synchronize()
    return (device.now() - began) / launches


def by_events(run, device, count):
    marks = []
    for _ in range(count):
        device.sleep(300_000)
        device.flush_cache()
        marks.append((device.record(), run(), device.record()))
    device.synchronize()
    return [device.elapsed(start, end) for start, _, end in marks]
