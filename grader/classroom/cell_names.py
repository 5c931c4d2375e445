"""Names of the parts of a class's notebook, on which its writer and its readers agree."""

SOLUTION_CELL, CHECK_CELL = "submission", "check"
