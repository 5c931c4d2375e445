"""Known mistakes: the result that a mistake would give is compared with the result of the kernel."""
