"""42 · Measure it: how long does one launch of a kernel take on a GPU?"""

import statistics


def rounds_of(run, device, count):
    """Launches `run` in so many rounds. Returns the seconds that the GPU took for the launch of each, a list."""
    # Make each round start in the same state, and let events say what the GPU took: about 9 lines.
    ### BEGIN SOLUTION
    events = []
    for _ in range(count):
        device.flush_cache()
        device.sleep(500_000)  # a quarter of a millisecond or more, in which the host gets ahead of the GPU
        start = device.record()
        run()
        events.append((start, device.record()))
    device.synchronize()  # once: in a round it would let the queue run empty
    return [device.elapsed(start, end) for start, end in events]
    ### END SOLUTION


def seconds_of(run, device):
    """Returns the seconds that one launch of `run` takes on the GPU `device`, a float."""
    # Bring run and device into the state that they have in a long program, then measure: about 8 lines.
    ### BEGIN SOLUTION
    run.draw_inputs()
    run()  # compiles
    device.synchronize()
    began = device.now()
    while device.now() - began < 0.5:  # until the clock is up
        estimate = statistics.median(rounds_of(run, device, 5))
    rounds = min(max(60, round(0.3 / estimate)), 400)  # a third of a second, and enough for a median
    return statistics.median(rounds_of(run, device, rounds))
    ### END SOLUTION
