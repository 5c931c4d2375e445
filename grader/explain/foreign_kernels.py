"""Kernels that are launched and are not the file's own."""

from __future__ import annotations

from grader.explain.causes import Cause
from grader.explain.verdict import Verdict, failed
from grader.sentences import Said, Sentence


class ForeignKernel(Sentence):
    ANOTHER_ONE = "The kernel {name} that is launched is not the one in your file: that one compiles to something else."
    NOT_IN_FILE = "The kernel {name} that is launched does not stand in your file."
    NOT_ALONE = "The kernel {name} does not compile from your file's kernels and constants alone: {message}"
    NOT_TO_ITS_END = (
        "The kernel {name} does not compile from your file's kernels and constants alone: its process ended ({how})"
    )
    ADVICE_OWN = "A launch has to use a function under @triton.jit of this file, as it stands there."
    ADVICE_PLAIN = "A kernel may use tl, the kernels of its file, and constants that are plain values."


def another_one(name: str) -> Verdict:
    return _foreign(ForeignKernel.ANOTHER_ONE(name=name), ForeignKernel.ADVICE_OWN())


def not_in_file(name: str) -> Verdict:
    return _foreign(ForeignKernel.NOT_IN_FILE(name=name), ForeignKernel.ADVICE_OWN())


def not_alone(name: str, message: str) -> Verdict:
    """`message`: what the compiler says."""
    return _foreign(ForeignKernel.NOT_ALONE(name=name, message=message), ForeignKernel.ADVICE_PLAIN())


def not_to_its_end(name: str, how: str) -> Verdict:
    """`how`: the compiling process ended."""
    return _foreign(ForeignKernel.NOT_TO_ITS_END(name=name, how=how), ForeignKernel.ADVICE_PLAIN())


def _foreign(said: Said, advice: Said) -> Verdict:
    return failed(Cause.FOREIGN_KERNEL, said, advice, kind="error")
