"""The pytest plugin: a session, its report on the terminal, and its result file."""
