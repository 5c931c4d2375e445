"""Processes that import torch and Triton once, and fork the children in which calls are recorded or interpreted."""
