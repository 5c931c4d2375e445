"""A submission that could not be read, loaded or called, or whose process ended: what happened and what to do."""

from __future__ import annotations

import re
import signal
from dataclasses import replace

from grader.course.exercise import Exercise
from grader.explain.causes import Cause
from grader.explain.verdict import Verdict, failed
from grader.processes.faults import ChildEnded
from grader.submission.kernel_names import Refused
from grader.submission.text import Submission, builtin_at, calls_of, is_in_kernel
from grader.wire.messages import Failure
from grader.wire.reply import Refusal, Reply

MOST_WORD, MOST_MESSAGE = 80, 400  # characters of what Python, torch or Triton say
MOST_REFUSED = 8  # names that a verdict lists
FILE_SENTENCES = {
    "missing": "There is no file {name}: it is what you write, and what is graded.",
    "no-file": "{name} is a pipe, a device or a folder: an ordinary text file is graded.",
    "unreadable": "{name} cannot be read: {message}.",
    "too-long": "{name} is larger than 1 MiB: a kernel file is a few dozen lines.",
    "encoding": "{name} is not UTF-8 text from line {line} on ({message}): save it as UTF-8.",
    "syntax": "Line {line} of {name} is not valid Python: {message}.",
    "import": "{name} cannot be imported: {message} (line {line}).",
    "exit": "{name} ends the program in line {line} ({type}) instead of defining {entry}.",
    "memory": "Importing {name} asks for more memory than the 2 GiB it may use (line {line}).",
    "load": "Importing {name} raises {type} in line {line}: {message}",
}
CALL_SENTENCES = {
    "no-entry": "{name} defines no function {entry}: the grader calls {entry}({arguments}).",
    "arity": "{entry} cannot be called as {entry}({arguments}): {message}.",
    "import": "{entry} cannot be called: {message} (line {line}).",
    "exit": "{entry} ends the program in line {line} ({type}) instead of returning {returns}.",
    "memory": "{entry} asks for more memory than the 2 GiB it may use (line {line}).",
    "foreign-memory": "The argument {message} of the launch in line {line} is memory that this call neither got nor "
    "allocated: allocate in {entry}, in each call, as torch.empty_like does.",
    "endless": "The kernel does not come to an end: {message}, and it is in line {line}. Does every loop reach its "
    "end?",
    "grid": "The launch in line {line} asks for more programs than can be carried out: {message} came to their end in "
    "the time of a call. Is the grid meant to be that large?",
    "assert": "tl.device_assert in line {line} does not hold{message}",
    "not-known": "The kernel uses what is not judged here: {message} (line {line}).",
    "kernel": "Your kernel raises {type} in line {line}: {message}",
    "host": "{entry} raises {type} in line {line}: {message}",
}

# What Triton and torch say of common mistakes, and what it means.
PLAIN_WORDS = {
    "'int' object is not iterable": "Line {line} indexes a pointer or loops over a tile as Python does: elements are "
    "loaded with tl.load(pointer + offsets).",
    "'range' object has no attribute": "Python's range is no tile: tl.arange(0, BLOCK_N) makes one (line {line}).",
    "Unsupported ptr type": "tl.load and tl.store take pointers, such as x_ptr + offsets (line {line}): {message}.",
    "must be of type tl.constexpr": "tl.arange needs sizes known at compile time: a tl.constexpr such as BLOCK_N "
    "(line {line}).",
    "incompatible dimensions": "Tiles of different shapes meet in line {line} ({message}). A column of rows is "
    "rows[:, None], a row of columns cols[None, :]; pointers, mask and values of one load or store need one shape.",
    "'constexpr' object has no attribute 'shape'": "Line {line} treats a number as a value of the kernel, and it is a "
    "constant: Triton makes one of a parameter that is 1. Give it to triton.jit(do_not_specialize=[...]), or leave it "
    "be.",
    "no allocator was set": "Line {line} launches a kernel that makes descriptors, and they need memory on the GPU "
    "that nobody has provided: call triton.set_allocator with a function that allocates it, before the launch.",
    "unsupported tensor index": "Line {line} indexes a pointer or a tile as Python does: elements are loaded with "
    "tl.load(pointer + offsets), and [:, None] is the only index.",
    "must be Tensor, not tensor": "A torch function is called in the kernel (line {line}): use tl there, as in tl.exp.",
    "Expected dtype ['fp32', 'fp64'] but got fp16": "In line {line} a function gets fp16 that computes in fp32 only: "
    "convert before, with .to(tl.float32).",
}

# What Python says of a launch: with its Triton's own `run`, or as Triton puts it before it measures.
GIVEN_TWICE = re.compile(
    r"\brun\w*\(\) got multiple values for keyword argument '(\w+)'|Conflicting meta-parameters: (\w+)"
)
NOT_GIVEN = re.compile(r"dynamic_func\(\) missing \d+ required (?:positional|keyword-only) arguments?: (.*)")

# Built-in functions of Python that a beginner calls on a tile, and what does the same there.
OF_TILES = {
    "max": "tl.max(x, 0)", "min": "tl.min(x, 0)", "sum": "tl.sum(x, 0)", "abs": "tl.abs(x)", "len": "the block size",
    "any": "tl.max(x, 0)", "all": "tl.min(x, 0)", "round": "tl.floor(x + 0.5)", "float": "x.to(tl.float32)",
    "int": "x.to(tl.int32)",
}  # fmt: skip


# Operations that hand values of a tensor to Python, and how they are written.
ASKS_FOR_VALUES = {
    ".item()": "", ".tolist()": "", ".numpy()": "", ".cpu()": "",
    ".__float__()": "float(...)", ".__int__()": "int(...)", ".__complex__()": "complex(...)",
    ".__bool__()": "A condition", ".__index__()": "An index, or range(...),", ".__format__()": "A format such as :.1f",
    "torch.equal": "", "torch.allclose": "",
}  # fmt: skip


def file_failure(failure: Failure, submission: Submission, exercise: Exercise) -> Verdict:
    """The file as a whole: nothing of it could be called."""
    sentence = FILE_SENTENCES.get(failure.kind, FILE_SENTENCES["load"])
    return _failure(failure, sentence, submission, exercise, "file")


def not_allowed(refused: list[Refused], submission: Submission) -> Verdict:
    """The text of the file names what no kernel may: all of it, so that it is mended at once."""
    first = refused[0]
    code = submission.line(first.line)
    lines = [first.sentence, f"Line {first.line}:  {code}" if code else ""]
    lines += [one.sentence for one in refused[1:MOST_REFUSED]]
    if len(refused) > MOST_REFUSED:
        lines.append(f"There are {len(refused) - MOST_REFUSED} more of this kind.")
    return failed(Cause.NOT_ALLOWED, *lines, kind="file", line=first.line)


def _of_arguments(failure: Failure, submission: Submission) -> str:
    """Arguments of a launch that are given twice, or not at all: Python speaks of Triton's own functions there."""
    tuned = submission.tree is not None and bool(calls_of(submission.tree, "autotune"))
    if tuned and (twice := GIVEN_TWICE.search(failure.message)):
        return (
            f"{twice[1] or twice[2]} is given twice: by the launch in line {{line}} and by each configuration. Leave "
            "it out at the launch."
        )
    if missing := NOT_GIVEN.search(failure.message):
        names = re.findall(r"'(\w+)'", missing[1])
        what = f"The kernel's {' and '.join(names)} {'is' if len(names) == 1 else 'are'}"
        if tuned:
            return f"{what} given neither by the launch in line {{line}} nor by the configurations."
        return f"{what} not given by the launch in line {{line}}."
    return ""


def call_failure(failure: Failure, submission: Submission, exercise: Exercise) -> Verdict:
    """The entry was called and did not return."""
    sentence = CALL_SENTENCES.get(failure.kind, CALL_SENTENCES["host"])
    sentence = _of_a_mistake(failure) or _of_arguments(failure, submission) or sentence
    return _failure(failure, sentence, submission, exercise, "error")


def kernel_mistake(failure: Failure, submission: Submission, exercise: Exercise) -> Verdict | None:
    """What the compiler refuses and a beginner often writes, in plain words; None: it is something else."""
    sentence = _of_a_mistake(failure)
    if name := builtin_at(submission.tree, failure.line, OF_TILES):
        sentence = f"Python's {name} does not work on a tile (line {{line}}): use {OF_TILES[name]}."
    if not sentence:
        return None
    return _failure(replace(failure, kind="does-not-compile"), sentence, submission, exercise, "error")


def _of_a_mistake(failure: Failure) -> str:
    return next((plain for part, plain in PLAIN_WORDS.items() if part in failure.message), "")


def _failure(failure: Failure, sentence: str, submission: Submission, exercise: Exercise, kind: str) -> Verdict:
    text = (
        sentence.format(
            name=submission.path.name,
            entry=exercise.entry,
            arguments=", ".join(exercise.arguments),
            returns=exercise.result_text,
            line=failure.line or "?",
            type=failure.type,
            message=shortened(" ".join(failure.message.split())).rstrip(".") or failure.type,
        )
        .replace(" (line ?)", "")
        .replace(" in line ?", "")
        .replace("Line ? of ", "")
        .replace("returning .", "returning.")
    )
    code = submission.line(failure.line)
    place = f"Line {failure.line}:  {code}" if code and failure.kind != "encoding" else ""
    return failed(failure.kind, _ended(text), place, kind=kind, line=failure.line)


def ended(how: ChildEnded, at_import: bool, submission: Submission, exercise: Exercise) -> Verdict:
    """The child died, hung or sent nonsense, during a call or while it imported the file."""
    what, kind = (f"Importing {submission.path.name}", "file") if at_import else (exercise.entry, "ended")
    if how.how == "time":
        return _out_of_time(what, kind, how, at_import, submission)
    if how.how == "signal":
        return failed(Cause.CRASH, _crash_sentence(what, int(how.detail)), kind=kind)
    if how.how == "exit":
        sentence = f"{what} ended its process (exit status {how.detail}) instead of coming to its end."
        return failed(Cause.PROCESS_EXIT, sentence, "Remove the call that ends it, such as os._exit.", kind=kind)
    sentence = f"{what} left its process unable to answer ({how.detail})."
    return failed(Cause.GARBLED, sentence, "Your file must leave file descriptors and the grader alone.", kind=kind)


def _out_of_time(what: str, kind: str, how: ChildEnded, at_import: bool, submission: Submission) -> Verdict:
    """What it was doing when its time was used up, as far as that is known."""
    line, sentence = how.where.line, f"{what} did not finish within {how.detail}"
    if how.where.compiling:
        sentence += f": then the compiler was still at work on what line {line} launches."
        advice = (
            "tl.static_range, and `for` over Python values, are written out turn by turn: use range for long loops."
        )
    elif line:
        sentence += f": then it was in line {line}."
        advice = "Does this line come to an end, and every loop around it?"
    else:
        sentence += ": does every loop reach its end?"
        advice = ""
    if at_import:
        advice = 'What tries your kernel out belongs below `if __name__ == "__main__":`.'
    code = submission.line(line)
    return failed(Cause.TIME_LIMIT, sentence, advice, f"Line {line}:  {code}" if code else "", kind=kind, line=line)


def _crash_sentence(what: str, number: int) -> str:
    if number == signal.SIGSEGV:
        return f"{what} crashed its process (segmentation fault): memory outside of any tensor was touched."
    if number == signal.SIGKILL:
        return f"{what} was killed (signal 9): by a call in your file, or by the system because memory ran out."
    known = {item.value: item.name for item in signal.Signals}
    return f"{what} crashed its process ({known.get(number, f'signal {number}')})."


def refusal(refusals: list[Refusal], submission: Submission, exercise: Exercise) -> Verdict:
    """A torch operation did work that belongs in the kernel."""
    first = refusals[0]
    where = f" in line {first.line}" if first.line else ""
    sentence = f"{_operation_text(first.operation)}{where} does work that your kernel has to do."
    allowed = "The host function may allocate, fill, take views and launch; it may not compute."
    if first.operation in ASKS_FOR_VALUES:
        what = ASKS_FOR_VALUES[first.operation] or first.operation
        sentence = f"{what}{where} asks for the values of a tensor, and those only kernels see."
        allowed = "The host function may ask for shapes, strides and dtypes, allocate, fill, take views and launch."
    if is_in_kernel(submission.tree, first.line):
        sentence = f"torch is called in the kernel{where} ({first.operation})."
        allowed = "In a kernel only tl works, as in tl.arange or tl.exp: a GPU knows no torch."
    code = submission.line(first.line)
    place = f"Line {first.line}:  {code}" if code else ""
    return failed(Cause.TORCH_DID_IT, sentence, allowed, place, kind="refused", line=first.line)


def _operation_text(operation: str) -> str:
    if operation.startswith("["):
        return "The assignment to elements of a tensor"
    return operation[:1].upper() + operation[1:] if " " in operation else operation


def left_behind(reply: Reply, exercise: Exercise) -> Verdict | None:
    """Threads or processes that outlive the call."""
    left = [("thread", reply.threads), ("process", reply.processes)]
    found = [f"{count} {noun}" for noun, count in left if count]
    if not found:
        return None
    sentence = f"{exercise.entry} returned and left {' and '.join(found)} running: all work must be done by then."
    return failed(Cause.LEFT_BEHIND, sentence, kind="error")


def shortened(text: str) -> str:
    """Long words, and a long text, by their beginning and their end: what is alike up to there differs somewhere."""
    words = [word if len(word) <= MOST_WORD else f"{word[:40]}...{word[-20:]}" for word in text.split(" ")]
    text = " ".join(words)
    return text if len(text) <= MOST_MESSAGE else f"{text[: MOST_MESSAGE - 100]} ... {text[-100:]}"


def _ended(text: str) -> str:
    return text if text.endswith((".", "?", "!")) else f"{text}."
