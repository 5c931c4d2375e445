"""Judges a kernel that belongs to no exercise, against a reference in torch that its author states."""
