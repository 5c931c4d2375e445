"""From evidence to words: one sentence that names the mistake, what shows it, and where it is."""
