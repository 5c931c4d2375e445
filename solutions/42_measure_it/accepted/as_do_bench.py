"""The way of triton.testing.do_bench: rounds by an estimate, flush, event, launch, event. No sleep: the flush keeps the
GPU busy long enough. Its warm-up flushes too, and is longer than do_bench's, which is 25 ms."""

import statistics


def seconds_of(run, device):
    run.draw_inputs()
    run()
    device.synchronize()
    start = device.record()
    for _ in range(5):
        device.flush_cache()
        run()
    end = device.record()
    device.synchronize()
    estimate = device.elapsed(start, end) / 5
    for _ in range(max(1, int(0.7 / estimate))):
        device.flush_cache()
        run()
    starts, ends = [], []
    for _ in range(max(80, int(0.1 / estimate))):
        device.flush_cache()
        starts.append(device.record())
        run()
        ends.append(device.record())
    device.synchronize()
    return statistics.median(device.elapsed(start, end) for start, end in zip(starts, ends))
