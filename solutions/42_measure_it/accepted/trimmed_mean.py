"""The mean of the middle half of the rounds: no disturbed round is in it, and none of the extremes."""


def seconds_of(run, device):
    run.draw_inputs()
    rounds(run, device, 1)
    began = device.now()
    while device.now() - began < 0.7:
        some = rounds(run, device, 4)
    count = 100 if min(some) > 5e-3 else 400
    times = sorted(rounds(run, device, count))
    middle = times[count // 4 : -count // 4]
    return sum(middle) / len(middle)


def rounds(run, device, count):
    events = []
    for _ in range(count):
        device.flush_cache()
        device.sleep(1_000_000)
        events.append(device.record())
        run()
        events.append(device.record())
    device.synchronize()
    return [device.elapsed(start, end) for start, end in zip(events[::2], events[1::2])]
