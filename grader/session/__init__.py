"""The pytest plugin: a session, what it prints, what it writes."""
