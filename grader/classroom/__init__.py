"""A class: notebooks for nbgrader, many submissions, exports. The judge is the one of `pytest exercises/NN_name`."""

from grader.classroom.cells import predict, report, score

__all__ = ["predict", "report", "score"]
