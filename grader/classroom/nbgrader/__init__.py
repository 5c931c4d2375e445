"""A class in nbgrader: its folder and notebooks, the verdicts put into the gradebook, exports of the gradebook."""
