"""The learner's own record of the exercises, their hints, and the exercise that is next."""
