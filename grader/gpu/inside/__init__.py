"""Inside the replay process, which owns the GPU: checking, timing, and the anchors."""
