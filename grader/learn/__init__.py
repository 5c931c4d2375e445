"""Commands and notebooks for learners: hints, progress, watch, traces, pictures. Nothing leaves the machine."""
