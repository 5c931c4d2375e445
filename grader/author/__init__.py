"""The author's side: deriving stubs from solutions, and proving that an exercise is sound."""
