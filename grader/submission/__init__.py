"""The learner's text, read and not run."""
