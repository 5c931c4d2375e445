"""The compiler's text: what it says, read without Triton."""
