"""What runs in the interpreter and not on a GPU: the compiler's refusals, and what a launch plan cannot hold."""

from __future__ import annotations

import ast
import re

from grader.course.exercise import Exercise
from grader.explain.causes import Cause
from grader.explain.failures import kernel_mistake, shortened
from grader.explain.verdict import Verdict, failed
from grader.submission.text import Submission
from grader.wire.messages import Failure, GpuModel

STATEMENTS = {
    "Break": "`break`; run the loop to its end, or use while with a condition",
    "Continue": "`continue`; use if around the rest of the loop's body",
    "Import": "an import; import at the top of the file",
    "ImportFrom": "an import; import at the top of the file",
    "Lambda": "lambda; write a function with @triton.jit",
    "Try": "try; nothing raises on a GPU",
    "Yield": "yield; a kernel stores its results",
}
NO_GLOBALS = "a kernel sees no globals, and {1} is one: pass it as an argument, as {1}: tl.constexpr."
NO_PYTHON_FUNCTION = "the kernel calls {1}, a Python function: give it @triton.jit."
# What the compiler says, and what it means. {1} is the first group of the pattern.
PLAIN_WORDS = (
    (r"unsupported AST node type: (\w+)",
     "a kernel cannot contain {statement}."),
    (r"Boolean value of Tensor",
     "`if` and `while` need one value for the whole program, and this is a tile: use tl.where, or a mask."),
    (r"Loop-carried variable (\w+) has initial type (.*?) but is re-assigned to (.*?) in loop",
     "{1} begins the loop as {2} and leaves it as {3}: a variable keeps its type and shape through a loop."),
    (r"Cannot access global variable (\w+)",
     NO_GLOBALS),
    (r"Unsupported function referenced: <function (\w+)",
     NO_PYTHON_FUNCTION),
    (r"Keyword argument (\w+) was specified but unrecognised",
     "the launch passes {1}, which is no parameter of the kernel and no option of Triton's."),
    (r"(\w+) is not defined",
     "{1} is not known there: it is assigned on one path only, or it is a built-in of Python that kernels lack (tl has "
     "sum, max, abs and others)."),
    (r"is not string",
     'print in a kernel wants a text first: tl.device_print("x", x).'),
    (r"f-string",
     'an f-string in a kernel can hold constants only: tl.device_print("N", N).'),
    (r"unsupported tensor index",
     "a tile cannot be indexed with a number: mask and reduce, as in tl.sum(tl.where(cols == 0, x, 0), 0)."),
    (r"'torch.dtype' object",
     "torch's dtypes are not known in a kernel: use tl.float32."),
    (r"(float|int)\(\) argument must be",
     "{1}(...) of a kernel's value: use .to(tl.float32), or another dtype of tl."),
    (r"only tuple comprehensions",
     "a kernel cannot contain a list comprehension: use a tile, or tl.static_range."),
    (r"__setitem__ is not supported",
     "a tile cannot be assigned to in parts: use tl.where."),
    (r"'(?:constexpr|int)' object has no attribute 'to'",
     "a value here is a constant, as tl.constexpr arguments are, and numbers that are 1 in a call: it has no .to, and "
     "tl.cast(value, tl.int64) does the same for constants too."),
    (r"'constexpr' object has no attribute '(\w+)'",
     "a value here is a constant, as tl.constexpr arguments are, and numbers that are 1 in a call: it has no .{1}, and "
     "tl.multiple_of and its like say nothing of constants."),
    (r"Did you forget to add @triton.jit",
     "a function that is called lacks @triton.jit; or a value stands where a constant is expected, such as "
     "a descriptor's last stride, which is 1."),
    (r"multiple values for argument '_semantic'",
     "a function gets more arguments than it takes: a descriptor's load has one, the corner as a list, "
     "x.load([row, column])."),
    (r"'tensor' has no len\(\)",
     "a list is expected where a value stands: a descriptor's store gets the corner first, "
     "x.store([row, column], tile)."),
    (r"num_warps must be a power of 2",
     "num_warps has to be 1, 2, 4, 8, 16 or 32."),
)  # fmt: skip
WRAPPED = re.compile(r"^\w+\((['\"])(.*?)\1?\)?$", re.DOTALL)
MEMORY_ADDRESS = re.compile(r" at 0x[0-9a-f]+")


# Of failures: what stopped a call before anything was launched.
BEFORE_ANY_LAUNCH = ("compile", "resources", "not-recordable")


def is_known(failure: Failure) -> bool:
    """Whether the compiler's own words for this are known here, whoever raised them."""
    return any(re.search(pattern, failure.message) for pattern, _ in PLAIN_WORDS)


def compiler_refusal(failure: Failure, submission: Submission, exercise: Exercise, model: GpuModel) -> Verdict:
    """Nothing runs on a GPU before this is mended, however right it is in the interpreter."""
    if failure.kind == "resources":
        return _does_not_fit(failure, submission, exercise, model)
    if failure.kind == "compile" and not is_known(failure):
        mistake = kernel_mistake(failure, submission, exercise)
        if mistake is not None:
            return mistake
    where = f"line {failure.line}" if failure.line else exercise.entry
    id, says = Cause.DOES_NOT_COMPILE, f"The compiler refuses {where}"
    if failure.kind == "not-recordable":
        id, says = Cause.NOT_RECORDABLE, where[:1].upper() + where[1:] if failure.line else where
    code = submission.line(failure.line)
    place = f"Line {failure.line}:  {code}" if code else ""
    return failed(id, f"{says}: {_meaning(failure, submission)}", place, kind="error", line=failure.line)


def _meaning(failure: Failure, submission: Submission) -> str:
    message = failure.message
    if wrapped := WRAPPED.match(message):
        message = wrapped[2]
    for pattern, words in PLAIN_WORDS:
        if found := re.search(pattern, message):
            if words == NO_GLOBALS and _is_function(found[1], submission):  # Triton 3.6, when asked a second time
                words = NO_PYTHON_FUNCTION
            named = STATEMENTS.get(found[1] if found.groups() else "", f"`{(found.groups() or ('this',))[0].lower()}`")
            return shortened(words.replace("{statement}", named).format("", *found.groups()))
    text = shortened(MEMORY_ADDRESS.sub("", " ".join(message.split()))).rstrip(".") or failure.type
    return text if text.endswith("?") else f"{text}."


def _is_function(name: str, submission: Submission) -> bool:
    return any(isinstance(node, ast.FunctionDef) and node.name == name for node in submission.tree.body)


def _does_not_fit(failure: Failure, submission: Submission, exercise: Exercise, model: GpuModel) -> Verdict:
    found = re.search(r"out of resource: ([\w ]+), Required: (\d+), Hardware limit: (\d+)", failure.message)
    if not found:
        return failed(
            Cause.DOES_NOT_FIT,
            f"A block of {exercise.entry} does not fit {model.name}: {failure.message}",
            kind="cause",
        )
    what, needed, limit = found.groups()
    unit = f"bytes of {what}" if "memory" in what else what
    advice = "Smaller tiles or fewer stages (num_stages=) need less." if "memory" in what else "Use fewer warps."
    code = submission.line(failure.line)
    place = f"Line {failure.line}:  {code}" if code else ""
    sentence = f"A block needs {needed} {unit}; {model.name} has {limit}, so the launch would fail."
    return failed(Cause.DOES_NOT_FIT, sentence, advice, place, kind="cause", line=failure.line)
