"""The code inside the replay process, which owns a GPU context: checking, timing, and the anchors."""
