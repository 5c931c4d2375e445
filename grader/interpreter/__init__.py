"""Runs the compiler's text on the CPU: values, memory and its checks. Knows neither Triton nor a learner's Python."""
