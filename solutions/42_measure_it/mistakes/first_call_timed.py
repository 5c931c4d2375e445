"""Wrong: ten launches are timed together from the first on, which compiles.

Finding: compilation-timed

Rejected with: The first call of run() compiles the kernel
"""


def seconds_of(run, device):
    """Returns the seconds that one launch of `run` takes on the GPU `device`, a float."""
    began = device.now()
    for _ in range(10):
        run()
    device.synchronize()
    return (device.now() - began) / 10
