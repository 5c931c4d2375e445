"""Says why a call has no exact run, in which every float has 64 bits."""

from __future__ import annotations

from grader.explain.evidence import in_line
from grader.sentences import Said, Sentence
from grader.ttir.exact_text import NoExactRun, Why


class NoExact(Sentence):
    CODES = "the kernel computes with floats of 8 bits or less{place}, which are codes and no rounded numbers."
    BITS = "the kernel reads the bits of a float{place}, or the address of one as a number."
    DIRECTED = "{what}{place} asks for a rounding."
    MEMORY = "{what}{place} is used as several dtypes."
    SIZE = "the tensors of this call are too large for it."
    ENDED = "it has not come to its end{place}: {what}"


def why_no_exact_run(why: NoExactRun) -> Said:
    sentence = NoExact[Why(why.why).name]
    fields = {"place": in_line(why.line), "what": why.what or "a tensor"}
    return sentence(**{name: value for name, value in fields.items() if name in sentence.fields})
