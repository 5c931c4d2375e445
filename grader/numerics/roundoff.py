"""The distance that one correct rounding moves a number, per dtype; and the bounds that allow no more than that."""

from __future__ import annotations

import torch

U32 = 2.0**-24
UNIT_ROUNDOFF = {torch.float64: 2.0**-53, torch.float32: U32, torch.float16: 2.0**-11, torch.bfloat16: 2.0**-8}
FLUSHED = 1.25 * 2.0**-126  # a little more than the smallest normal number of fp32 and bf16
# The most that is lost near 0: half a step of subnormal fp16, or all of a number that is flushed to 0.
ETA = {torch.float64: 0.0, torch.float32: FLUSHED, torch.float16: 2.0**-24, torch.bfloat16: FLUSHED}

# "bits": the same bits, for copies. "exact": the exact result rounded once (-0.0 equals 0.0).
EXACT = ("bits", "exact")
UNJUDGED = "unjudged"  # for a result that the call does not determine: it may hold anything, or nothing
