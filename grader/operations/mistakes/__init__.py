"""Families of mistakes that kernels of several operations share: one file a subject, one id and sentence a mistake.

A file may state CAUSES and PLAIN_CAUSES as an operation does. An operation says which families fit it, and what a
kernel with one of their mistakes computes.
"""
