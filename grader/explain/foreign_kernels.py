"""Explains launches of kernels that cannot be made from the file alone."""

from __future__ import annotations

from grader.explain.causes import Cause
from grader.explain.verdict import Verdict, failed
from grader.sentences import Sentence
from grader.wire.messages import FOREIGN_KERNEL, NOT_PLAIN, Failure

KINDS = (FOREIGN_KERNEL, NOT_PLAIN)  # of failures


class ForeignKernel(Sentence):
    NOT_IN_FILE = "The kernel {name} that is launched does not stand in your file."
    NOT_ALONE = "The kernel {name} does not compile from your file's kernels and constants alone: {message}."
    ADVICE_OWN = "A launch has to use a function under @triton.jit of this file, as it stands there."
    ADVICE_PLAIN = "A kernel may use tl, the kernels of its file, and constants that are plain values."


def foreign_kernel(failure: Failure) -> Verdict:
    """Returns the verdict on a failure of a kind in KINDS."""
    if failure.kind == FOREIGN_KERNEL:
        said, advice = ForeignKernel.NOT_IN_FILE(name=failure.kernel), ForeignKernel.ADVICE_OWN()
    else:
        said, advice = (
            ForeignKernel.NOT_ALONE(name=failure.kernel, message=failure.message),
            ForeignKernel.ADVICE_PLAIN(),
        )
    return failed(Cause.FOREIGN_KERNEL, said, advice, kind="error")
