"""Cheat: the solution's file is read and run.

Rejected with: Importing reads_solution.py raises FileNotFoundError in line
"""

import torch
import triton
import triton.language as tl

BLOCK_N = 1024

with open("solutions/01_masked_add/masked_add.py") as file:
    exec(file.read())
