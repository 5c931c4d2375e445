"""Warms up until a group of rounds is no faster than the group before it, by the same events that measure."""

import statistics


def seconds_of(run, device):
    run.draw_inputs()
    run()
    group = 25
    before, now = float("inf"), median_of(run, device, group)
    falls = 0
    while falls < 8:  # groups in a row that are not faster than the fastest so far
        before = min(before, now)
        now = median_of(run, device, group)
        falls = falls + 1 if now > 0.995 * before else 0
    return median_of(run, device, 80 if now > 1e-3 else 400)


def median_of(run, device, rounds):
    marks = []
    for _ in range(rounds):
        device.flush_cache()
        device.sleep(2_000_000)
        start = device.record()
        run()
        end = device.record()
        marks.append((start, end))
    device.synchronize()
    return statistics.median(device.elapsed(start, end) for start, end in marks)
