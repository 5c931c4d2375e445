"""What the parts of a class's notebook are called: those who write one and those who read one have to agree."""

SOLUTION_CELL, CHECK_CELL = "submission", "check"
