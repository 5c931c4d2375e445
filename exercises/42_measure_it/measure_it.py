"""42 · Measure it: how long does one launch of a kernel take on a GPU?"""

import statistics


def rounds_of(run, device, count):
    """Launches `run` in so many rounds. Returns the seconds that the GPU took for the launch of each, a list."""
    # Make each round start in the same state, and let events say what the GPU took: about 9 lines.
    # YOUR CODE HERE
    pass


def seconds_of(run, device):
    """Returns the seconds that one launch of `run` takes on the GPU `device`, a float."""
    # Bring run and device into the state that they have in a long program, then measure: about 8 lines.
    # YOUR CODE HERE
    pass
