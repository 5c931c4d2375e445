"""The learner's file as text: it is read, and not run."""
