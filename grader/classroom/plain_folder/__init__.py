"""A folder of submissions without nbgrader: reading the folder, judging it, writing the results next to it."""
