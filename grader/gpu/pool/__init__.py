"""The owners of replay processes: they choose which process answers, when, and how far its answer is trusted."""
