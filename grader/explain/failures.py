"""Explains a submission that could not be read, loaded or called, or whose process ended, and says what to do."""

from __future__ import annotations

import re
import signal
from dataclasses import replace

from grader.course.exercise import Exercise
from grader.explain.causes import Cause
from grader.explain.evidence import in_line, source_line
from grader.explain.launch_arguments import launch_arguments
from grader.explain.out_of_time import out_of_time
from grader.explain.tuning_results import tuning_result
from grader.explain.verdict import Verdict, failed
from grader.processes.faults import ChildEnded
from grader.sentences import Said, Sentence
from grader.submission.kernel_names import Refused
from grader.submission.text import Submission, builtin_at, constant_of_arange
from grader.submission.tuning_lines import line_of_grid
from grader.wire.messages import Failure
from grader.wire.reply import Refusal, Reply

MOST_WORD, MOST_MESSAGE = 80, 400  # characters of a word, and of a message, by Python, torch or Triton
MOST_REFUSED = 8  # names that a verdict lists

# Built-in functions of Python that a beginner calls on a tile, each with what does the same on a tile.
OF_TILES = {
    "max": "tl.max(x, 0)", "min": "tl.min(x, 0)", "sum": "tl.sum(x, 0)", "abs": "tl.abs(x)", "len": "the block size",
    "any": "tl.max(x, 0)", "all": "tl.min(x, 0)", "round": "tl.floor(x + 0.5)", "float": "x.to(tl.float32)",
    "int": "x.to(tl.int32)",
}  # fmt: skip

# Operations that hand values of a tensor to Python, each as a learner writes it; "": under the same name.
ASKS_FOR_VALUES = {
    ".item()": "", ".tolist()": "", ".numpy()": "", ".cpu()": "",
    ".__float__()": "float(...)", ".__int__()": "int(...)", ".__complex__()": "complex(...)",
    ".__bool__()": "A condition", ".__index__()": "An index, or range(...),", ".__format__()": "A format such as :.1f",
    "torch.equal": "", "torch.allclose": "",
}  # fmt: skip


class Failures(Sentence):
    """Sentences about failures.

    If no line is known, {in_line} (" in line 12") and {at_line} (" (line 12)") are empty, and {line} is "?".
    """

    # The file as a whole.
    MISSING = "There is no file {name}: it is what you write, and what is graded."
    NO_FILE = "{name} is a pipe, a device or a folder: an ordinary text file is graded."
    UNREADABLE = "{name} cannot be read: {message}."
    TOO_LONG = "{name} is larger than 1 MiB: a kernel file is a few dozen lines."
    TOO_MANY_NODES = (
        "{name} has more than 20000 names, numbers, operators and statements: a kernel file has one or two thousand."
    )
    JUDGED_TOO_LONG = (
        "Judging {name} was stopped after {message}: it computed all that time, and a right file takes a small part of "
        "it. Keep to what the exercise asks for, and see that pytest comes to an end on the file."
    )
    NOT_UTF_8 = "{name} is not UTF-8 text from line {line} on ({message}): save it as UTF-8."
    OTHER_ENCODING = "Line {line} of {name} says that its text is {message}: save it as UTF-8, and leave that line out."
    SYNTAX = "Line {line} of {name} is not valid Python: {message}."
    SYNTAX_SOMEWHERE = "{name} is not valid Python: {message}."
    NOTEBOOK_COMMAND = (
        "Line {line} of {name} is a command of notebooks and no Python, as every line that begins with % or !: take it "
        "out, or move it into a cell of its own."
    )
    NOTEBOOK = (
        "{name} is a notebook, saved under the name of a Python file: write into {name} what stands in its solution "
        "cell below the line that begins with %%writefile."
    )
    NESTED = (
        "Line {line} of {name} nests more than {message} levels deep, one part in another: the grader reads no deeper. "
        "Give the inner parts names of their own."
    )
    NESTED_SOMEWHERE = (
        "{name} nests more than {message} levels deep, one part in another: the grader reads no deeper. Give the inner "
        "parts names of their own."
    )
    FILE_IMPORT = "{name} cannot be imported: {message}{at_line}."
    FILE_EXIT = "{name} ends the program{in_line} ({type}) instead of defining {entry}."
    FILE_MEMORY = "Importing {name} asks for more memory than the 2 GiB it may use{at_line}."
    FILE_RAISES = "Importing {name} raises {type}{in_line}: {message}"
    MORE_REFUSED = "There are {count} more of this kind."

    # A call.
    NO_ENTRY = "{name} defines no function {entry}: the grader calls {entry}({arguments:,})."
    ARITY = "{entry} cannot be called as {entry}({arguments:,}): {message}."
    IMPORT = "{entry} cannot be called: {message}{at_line}."
    EXIT = "{entry} ends the program{in_line} ({type}) instead of returning {returns}."
    EXIT_OF_NO_RESULT = "{entry} ends the program{in_line} ({type}) instead of returning."
    MEMORY = "{entry} asks for more memory than the 2 GiB it may use{at_line}."
    FOREIGN_MEMORY = (
        "The argument {message} of the launch{in_line} is memory that this call neither got nor allocated: allocate in "
        "{entry}, in each call, as torch.empty_like does."
    )
    WAITS = (
        "The kernel does not come to an end: program {program} asks again and again for what other programs have to do "
        "(on a GPU, too, these may have to wait for it to end: a launch has no barrier), and it is{in_line}. Does "
        "every loop reach its end?"
    )
    ENDLESS = "The kernel does not come to an end: {message}, and it is{in_line}. Does every loop reach its end?"
    ENDLESS_LOOP = (
        "The `while` in line {line} never ends: no iteration changes what its condition asks for. Does the loop move a "
        "number on?"
    )
    GRID = (
        "The launch{in_line} asks for more programs than can be carried out: {message} came to their end in the time "
        "of a call. Is the grid meant to be that large?"
    )
    ASSERT = "tl.device_assert{in_line} does not hold in program {program}."
    ASSERT_SAYS = "tl.device_assert{in_line} does not hold in program {program}: {message}"
    NOT_KNOWN = "The kernel uses what is not judged here{at_line}: {message}."
    KERNEL = "Your kernel raises {type}{in_line}: {message}"
    HOST = "{entry} raises {type}{in_line}: {message}"
    LEFT_PROCESSES = "{entry} returned and left {processes:#process} running: all work must be done by then."

    # Common mistakes in a kernel.
    LIKE_A_LIST = (
        "Line {line} indexes a pointer or loops over a tile as Python does: elements are loaded with tl.load(pointer + "
        "offsets)."
    )
    RANGE = "Python's range is no tile: tl.arange(0, BLOCK_N) makes one{at_line}."
    NO_POINTER = "tl.load and tl.store take pointers first, as x_ptr + offsets{at_line}, and here numbers stand there."
    ARANGE = (
        "tl.arange needs sizes known at compile time: a tl.constexpr such as BLOCK_N{at_line}. A block that begins "
        "elsewhere is start + tl.arange(0, BLOCK_N)."
    )
    ARANGE_OF_NO_WHOLE_NUMBER = (
        "tl.arange takes whole numbers{at_line}, and {constant}, a tl.constexpr, is none in this call: what gives it "
        "its value? / makes a fraction, // a whole number."
    )
    SHAPES = (
        "Tiles of different shapes meet{in_line}{sizes}. A column of rows is rows[:, None], a row of columns "
        "cols[None, :]; pointers, mask and values of one load or store need one shape."
    )
    REDUCED_SHAPES = (
        "Tiles of different shapes meet{in_line}{sizes}. A reduction leaves the axes that it does not name: "
        "tl.sum(x, 1) has an element for each row of x, and tl.sum(x, 0) one for each column."
    )
    OPERANDS = "{left} is {first}, {right} is {second}."
    OPERANDS_WITH_A_ROW = (
        "{left} is {first}, {right} is {second}: a block of {size} numbers meets a tile as a row, [1, {size}]."
    )
    SPECIALIZED = (
        "Line {line} treats a number as a value of the kernel, and it is a constant: Triton makes one of a parameter "
        "that is 1. Give it to triton.jit(do_not_specialize=[...]), or leave it be."
    )
    NO_ALLOCATOR = (
        "Line {line} launches a kernel that makes descriptors, and they need memory on the GPU that nobody has "
        "provided: call triton.set_allocator with a function that allocates it, before the launch."
    )
    INDEX = (
        "Line {line} indexes a pointer or a tile as Python does: elements are loaded with tl.load(pointer + offsets), "
        "and [:, None] is the only index."
    )
    TORCH_FUNCTION = "A torch function is called in the kernel{at_line}: use tl there, as in tl.exp."
    FP32_ONLY = "In line {line} a function gets fp16 that computes in fp32 only: convert before, with .to(tl.float32)."
    BUILTIN = "Python's {builtin} does not work on a tile{at_line}: use {instead}."

    # The end of the process; {what}: "Importing softmax.py", or the entry.
    SEGMENTATION_FAULT = "{what} crashed its process (segmentation fault): memory outside of any tensor was touched."
    KILLED = "{what} was killed (signal 9): by a call in your file, or by the system because memory ran out."
    CRASHED = "{what} crashed its process ({signal})."
    TOO_MANY_PROCESSES = "{what} started more than {most} processes and threads."
    ENDED = "{what} ended its process (exit status {status}) instead of coming to its end."
    ADVICE_NO_EXIT = "Remove the call that ends it, such as os._exit."
    WORK = (
        "{what} was stopped: its kernels have carried out {count} operations in all calls together, twice as many as "
        "any right kernel of the course. Has the grid more programs than there are blocks, or a loop an iteration for "
        "each element?"
    )
    WORK_OF_ELEMENTS = (
        "{what} was stopped: its kernels have carried out {count} operations in all calls together, twice as many as "
        "any right kernel of the course. The grid of line {line} has a program for each element, or more: one for each "
        "block is enough, rounded up."
    )
    GARBLED = "{what} left its process unable to answer ({message})."
    ADVICE_DESCRIPTORS = "Your file must leave file descriptors and the grader alone."

    # Work that torch does instead of the kernel.
    COMPUTES = "{operation}{in_line} does work that your kernel has to do."
    ASSIGNS = "The assignment to elements of a tensor{in_line} does work that your kernel has to do."
    INDEXES = "Indexing a tensor with a tensor or a list{in_line} does work that your kernel has to do."
    MAY_LAUNCH = "The host function may allocate, fill, take views and launch; it may not compute."
    ASKS_FOR_VALUES = "{operation}{in_line} asks for the values of a tensor, and those only kernels see."
    MAY_ASK_FOR_SHAPES = (
        "The host function may ask for shapes, strides and dtypes, allocate, fill, take views and launch."
    )


OF_SUBSCRIPTS = {"[...]": Failures.INDEXES, "[...] =": Failures.ASSIGNS}  # by the name of the refused operation
OF_FILES = {
    "missing": Failures.MISSING,
    "no-file": Failures.NO_FILE,
    "unreadable": Failures.UNREADABLE,
    "too-long": Failures.TOO_LONG,
    "too-many-nodes": Failures.TOO_MANY_NODES,
    "time-limit": Failures.JUDGED_TOO_LONG,
    "encoding": Failures.NOT_UTF_8,
    "other-encoding": Failures.OTHER_ENCODING,
    "syntax": Failures.SYNTAX,
    "nested": Failures.NESTED,
    "import": Failures.FILE_IMPORT,
    "exit": Failures.FILE_EXIT,
    "memory": Failures.FILE_MEMORY,
}
WITHOUT_A_LINE = {Failures.SYNTAX: Failures.SYNTAX_SOMEWHERE, Failures.NESTED: Failures.NESTED_SOMEWHERE}
OF_CALLS = {
    "no-entry": Failures.NO_ENTRY,
    "arity": Failures.ARITY,
    "import": Failures.IMPORT,
    "exit": Failures.EXIT,
    "memory": Failures.MEMORY,
    "foreign-memory": Failures.FOREIGN_MEMORY,
    "endless": Failures.ENDLESS,
    "grid": Failures.GRID,
    "assert": Failures.ASSERT,
    "not-known": Failures.NOT_KNOWN,
    "kernel": Failures.KERNEL,
}
# Parts of what Python, Triton or torch say of common mistakes, each with a sentence that explains it.
PLAIN_WORDS = {
    "'int' object is not iterable": Failures.LIKE_A_LIST,
    "'range' object has no attribute": Failures.RANGE,
    "Unsupported ptr type": Failures.NO_POINTER,
    "must be of type tl.constexpr": Failures.ARANGE,
    "incompatible dimensions": Failures.SHAPES,
    "'constexpr' object has no attribute 'shape'": Failures.SPECIALIZED,
    "no allocator was set": Failures.NO_ALLOCATOR,
    "unsupported tensor index": Failures.INDEX,
    "must be Tensor, not tensor": Failures.TORCH_FUNCTION,
    "Expected dtype ['fp32', 'fp64'] but got fp16": Failures.FP32_ONLY,
}


NOTEBOOK = re.compile(rb'\s*\{\s*"(?:cells|metadata|nbformat)')  # JSON begins so, and is Python but for `false`
TWO_OPERANDS = re.compile(r"; left is (\[[\d, ]+\]): (.+); right is (\[[\d, ]+\]): (.+)$")
OF_REDUCTIONS = re.compile(r"; left is \[\d+\]: (?=.*tl\.(?:sum|max|min)\().*; right is \[\d+\]: ")
UNLIKE_SIZES = re.compile(r"incompatible dimensions at index (\d+): (\d+) and (\d+)")


def file_failure(failure: Failure, submission: Submission, exercise: Exercise) -> Verdict:
    """Returns the verdict on a file that could not be read or imported, so that nothing in it could be called."""
    if (told := tuning_result(failure, submission)) is not None:
        said, line = told
        return _failure(replace(failure, line=line), said, submission, "file")
    sentence = OF_FILES.get(failure.kind, Failures.FILE_RAISES)
    if not failure.line:
        sentence = WITHOUT_A_LINE.get(sentence, sentence)
    if NOTEBOOK.match(submission.source):
        sentence, failure = Failures.NOTEBOOK, replace(failure, line=0)
    elif failure.kind == "syntax" and submission.line(failure.line).startswith(("%", "!")):
        sentence = Failures.NOTEBOOK_COMMAND
    return _failure(failure, _filled(sentence, failure, submission, exercise), submission, "file")


def not_allowed(refused: list[Refused], submission: Submission) -> Verdict:
    """Returns the verdict on names in the file that no kernel may use; it lists several, to be mended at once."""
    first, others = refused[0], refused[1:MOST_REFUSED]
    left = len(refused) - MOST_REFUSED
    more = Failures.MORE_REFUSED(count=left) if left > 0 else None
    texts = {one.sentence.text: one.sentence for one in others if one.sentence.text != first.sentence.text}
    said = [first.sentence, source_line(submission, first.line), *texts.values(), more]
    return failed(Cause.NOT_ALLOWED, *said, kind="file", line=first.line)


def call_failure(failure: Failure, submission: Submission, exercise: Exercise) -> Verdict:
    """Returns the verdict on a call of the entry that failed."""
    said = _of_a_mistake(failure, submission, exercise)
    told = tuning_result(failure, submission) or launch_arguments(failure, submission)
    if said is None and told is not None:
        said, line = told
        return _failure(replace(failure, line=line), said, submission, "error")
    if said is None:
        sentence = OF_CALLS.get(failure.kind, Failures.HOST)
        if sentence is Failures.EXIT and not exercise.result_text:
            sentence = Failures.EXIT_OF_NO_RESULT
        elif sentence is Failures.ENDLESS and failure.type == "Endless" and failure.line:
            sentence = Failures.ENDLESS_LOOP
        elif sentence is Failures.ENDLESS and failure.program:
            sentence = Failures.WAITS
        elif sentence is Failures.ASSERT and failure.message:
            sentence = Failures.ASSERT_SAYS
        said = _filled(sentence, failure, submission, exercise)
    return _failure(failure, said, submission, "error")


def kernel_mistake(failure: Failure, submission: Submission, exercise: Exercise) -> Verdict | None:
    """Returns the verdict in plain words on a common mistake that the compiler refuses; None for anything else."""
    said = _of_a_mistake(failure, submission, exercise)
    if name := builtin_at(submission.tree, failure.line, OF_TILES):
        said = Failures.BUILTIN(builtin=name, at_line=_at_line(failure.line), instead=OF_TILES[name])
    return None if said is None else _failure(replace(failure, kind="does-not-compile"), said, submission, "error")


def _of_a_mistake(failure: Failure, submission: Submission, exercise: Exercise) -> Said | None:
    sentence = next((plain for part, plain in PLAIN_WORDS.items() if part in failure.message), None)
    if sentence is Failures.SHAPES and OF_REDUCTIONS.search(failure.message):
        sentence = Failures.REDUCED_SHAPES
    if sentence is Failures.ARANGE and (constant := constant_of_arange(submission.tree, failure.line)):
        return Failures.ARANGE_OF_NO_WHOLE_NUMBER(at_line=_at_line(failure.line), constant=constant)
    return None if sentence is None else _filled(sentence, failure, submission, exercise)


def _filled(sentence: Failures, failure: Failure, submission: Submission, exercise: Exercise) -> Said:
    """Returns the sentence, filled in with what is known of any failure."""
    message = shortened(" ".join(failure.message.split())).rstrip(".") or failure.type
    meet = UNLIKE_SIZES.search(failure.message)
    evidence = dict(
        sizes=f": along axis {meet[1]} they have {meet[2]} and {meet[3]} elements" if meet else "",
        name=submission.path.name,
        entry=exercise.entry,
        arguments=exercise.arguments,
        returns=exercise.result_text,
        line=failure.line or "?",
        in_line=in_line(failure.line),
        at_line=_at_line(failure.line),
        type=failure.type,
        program=tuple(failure.program),
        message=_ended(message) if sentence.value.endswith("{message}") else message,
    )
    return sentence(**{field: evidence[field] for field in sentence.fields})


def _failure(failure: Failure, said: Said, submission: Submission, kind: str) -> Verdict:
    place = source_line(submission, failure.line) if failure.kind != "encoding" else None
    operands = _operands(failure) if said.sentence in (Failures.SHAPES, Failures.REDUCED_SHAPES) else None
    return failed(failure.kind, said, operands, place, kind=kind, line=failure.line)


def _operands(failure: Failure) -> Said | None:
    """Returns the sentence that names both operands and their shapes; None where the line does not tell them."""
    found = TWO_OPERANDS.search(failure.message)
    if found is None:
        return None
    first, left, second, right = found.groups()
    told = dict(left=left, first=first, right=right, second=second)
    lines = [shape for shape in (first, second) if "," not in shape]
    if len(lines) != 1:
        return Failures.OPERANDS(**told)
    return Failures.OPERANDS_WITH_A_ROW(size=int(lines[0].strip("[]")), **told)


def ended(how: ChildEnded, at_import: bool, submission: Submission, exercise: Exercise) -> Verdict:
    """Returns the verdict on a child that died, hung or sent nonsense, in a call or (`at_import`) in the import."""
    what, kind = (f"Importing {submission.path.name}", "file") if at_import else (exercise.entry, "ended")
    if how.how == "time":
        return out_of_time(what, kind, how, at_import, submission)
    if how.how == "work":
        return _of_work(what, how, submission)
    if how.how == "signal":
        return failed(Cause.CRASH, _crash(what, int(how.detail)), kind=kind)
    if how.how == "processes":
        return failed(Cause.LEFT_BEHIND, Failures.TOO_MANY_PROCESSES(what=what, most=how.detail), kind=kind)
    if how.how == "exit":
        said = Failures.ENDED(what=what, status=how.detail)
        return failed(Cause.PROCESS_EXIT, said, Failures.ADVICE_NO_EXIT(), kind=kind)
    said = Failures.GARBLED(what=what, message=how.detail)
    return failed(Cause.GARBLED, said, Failures.ADVICE_DESCRIPTORS(), kind=kind)


def _of_work(what: str, how: ChildEnded, submission: Submission) -> Verdict:
    """Returns the verdict on kernels that have done too much, with the grid that makes a program of each element."""
    if not (launch := how.where.line):
        return failed(Cause.TIME_LIMIT, Failures.WORK(what=what, count=how.detail), kind="ended")
    line = line_of_grid(submission.tree, launch) or launch
    said = Failures.WORK_OF_ELEMENTS(what=what, count=how.detail, line=line)
    return failed(Cause.TIME_LIMIT, said, source_line(submission, line), kind="ended", line=line)


def _crash(what: str, number: int) -> Said:
    if number == signal.SIGSEGV:
        return Failures.SEGMENTATION_FAULT(what=what)
    if number == signal.SIGKILL:
        return Failures.KILLED(what=what)
    known = {item.value: item.name for item in signal.Signals}
    return Failures.CRASHED(what=what, signal=known.get(number, f"signal {number}"))


def refusal(refusals: list[Refusal], submission: Submission, exercise: Exercise) -> Verdict:
    """Returns the verdict on the first torch operation that was refused: it computes, or asks for values."""
    first = refusals[0]
    operation, where = first.operation, in_line(first.line)
    if operation in ASKS_FOR_VALUES:
        written = ASKS_FOR_VALUES[operation] or operation
        said = Failures.ASKS_FOR_VALUES(operation=written, in_line=where)
        allowed = Failures.MAY_ASK_FOR_SHAPES()
    else:
        said, allowed = _computes(operation, where), Failures.MAY_LAUNCH()
    place = source_line(submission, first.line)
    return failed(Cause.TORCH_DID_IT, said, allowed, place, kind="refused", line=first.line)


def _computes(operation: str, where: str) -> Said:
    if operation in OF_SUBSCRIPTS:
        return OF_SUBSCRIPTS[operation](in_line=where)
    if " " in operation:  # words, not a name in torch
        operation = operation[:1].upper() + operation[1:]
    return Failures.COMPUTES(operation=operation, in_line=where)


def left_behind(reply: Reply, exercise: Exercise) -> Verdict | None:
    """Returns the verdict on processes that outlive the call; None if there are none."""
    if not reply.processes:
        return None
    said = Failures.LEFT_PROCESSES(entry=exercise.entry, processes=reply.processes)
    return failed(Cause.LEFT_BEHIND, said, kind="error")


def _at_line(line: int) -> str:
    """Returns " (line 12)", to follow a sentence or a part of it; "" if the line is unknown."""
    return f" (line {line})" if line else ""


def shortened(text: str) -> str:
    """Returns the text, with the middle cut out of long words and of a long text: beginning and end tell the most."""
    words = [word if len(word) <= MOST_WORD else f"{word[:40]}...{word[-20:]}" for word in text.split(" ")]
    text = " ".join(words)
    return text if len(text) <= MOST_MESSAGE else f"{text[: MOST_MESSAGE - 100]} ... {text[-100:]}"


def _ended(text: str) -> str:
    return text if text.endswith((".", "?", "!")) else f"{text}."
