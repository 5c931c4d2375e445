"""The learner's own record, and what follows from it."""
