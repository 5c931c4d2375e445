"""Reads the compiler's text, without Triton."""
