"""What runs in the interpreter and not on a GPU: the compiler's refusals, and what a launch plan cannot hold."""

from __future__ import annotations

import ast
import re

from grader.course.exercise import Exercise
from grader.explain import foreign_kernels
from grader.explain.causes import Cause
from grader.explain.evidence import source_line
from grader.explain.failures import kernel_mistake, shortened
from grader.explain.loop_variables import CHANGES, loop_variable
from grader.explain.unknown_names import unknown_name
from grader.explain.verdict import Verdict, failed
from grader.sentences import Said, Sentence
from grader.submission.text import Submission, descriptors_made
from grader.wire.messages import Failure, GpuModel

WRAPPED = re.compile(r"^\w+\((['\"])(.*?)\1?\)?$", re.DOTALL)
MEMORY_ADDRESS = re.compile(r" at 0x[0-9a-f]+")
NO_ROOM = re.compile(r"out of resource: ([\w ]+), Required: (\d{1,18}), Hardware limit: (\d{1,18})")

# Of failures: what stopped a call before anything was launched.
BEFORE_ANY_LAUNCH = ("compile", "resources", "not-recordable", *foreign_kernels.KINDS)


class Compiler(Sentence):
    """What the compiler's words mean; {where} is "The compiler refuses line 12", or the place alone."""

    BREAK = "{where}: a kernel cannot contain `break`; run the loop to its end, or use while with a condition."
    CONTINUE = "{where}: a kernel cannot contain `continue`; use if around the rest of the loop's body."
    IMPORT = "{where}: a kernel cannot contain an import; import at the top of the file."
    LAMBDA = "{where}: a kernel cannot contain lambda; write a function with @triton.jit."
    TRY = "{where}: a kernel cannot contain try; nothing raises on a GPU."
    YIELD = "{where}: a kernel cannot contain yield; a kernel stores its results."
    STATEMENT = "{where}: a kernel cannot contain `{statement}`."
    CONDITION = (
        "{where}: `if` and `while` need one value for the whole program, and this is a tile: use tl.where, or a mask."
    )
    GLOBAL = "{where}: a kernel sees no globals, and {name} is one: pass it as an argument, as {name}: tl.constexpr."
    PYTHON_FUNCTION = "{where}: the kernel calls {name}, a Python function: give it @triton.jit."
    NO_PARAMETER = "{where}: the launch passes {name}, which is no parameter of the kernel and no option of Triton's."
    PRINT = '{where}: print in a kernel wants a text first: tl.device_print("x", x).'
    F_STRING = '{where}: an f-string in a kernel can hold constants only: tl.device_print("N", N).'
    INDEX = "{where}: an index picks no element of a tile: mask and reduce, as in tl.sum(tl.where(cols == 0, x, 0), 0)."
    ADDRESS = (
        "{where}: {name} is an address and cannot be indexed: tl.load({name} + offsets) reads what lies there, and "
        "tl.store({name} + offsets, values) writes."
    )
    AXIS = "{where}: {function} wants the number of an axis, as in {function}(x, 0), and here it is a computed value."
    MAX_OF_TWO = (
        "{where}: tl.max takes a block and the number of an axis, as in tl.max(x, 0): the larger of two values is "
        "tl.maximum(a, b)."
    )
    MIN_OF_TWO = (
        "{where}: tl.min takes a block and the number of an axis, as in tl.min(x, 0): the smaller of two values is "
        "tl.minimum(a, b)."
    )
    BLOCK_AT_ADDRESS = (
        "{where}: {pointer} is one address, and the value for it is a block: a block is stored at a block of "
        "addresses, {pointer} + offsets, and tl.sum(x, 0) makes one value of a block."
    )
    MASK_AT_ADDRESS = (
        "{where}: {pointer} is one address, and its mask or `other` is a block: a block is loaded or stored at a block "
        "of addresses, {pointer} + offsets."
    )
    NO_SUCH_AXIS = "{where}: there is no axis {axis} here: there are {count} axes, and they are counted from 0."
    ONLY_AXIS = "{where}: there is no axis {axis} here: the only one is axis 0, as in tl.sum(x, 0)."
    NO_AXIS = "{where}: there is no axis {axis} here: this is one value, and no block."
    NO_DTYPE = "{where}: tl.zeros wants a dtype too, as in tl.zeros((BLOCK_N,), dtype=tl.float32)."
    ACCUMULATOR = (
        "{where}: tl.dot(a, b, acc) makes its sums in {wanted}, and this accumulator is {given}: make it in {wanted}, "
        "and convert what you store, with .to()."
    )
    PRODUCT_OF_SHAPES = "{where}: tl.dot multiplies [m, k] by [k, n], and these tiles are {first} and {second}."
    ACCUMULATOR_SHAPE = "{where}: tl.dot(a, b, acc) makes a tile of {wanted} here, and this accumulator is {given}."
    STORED_SHAPE = "{where}: {name} stores tiles as large as its block, {block}, and this one is {given}."
    BLOCKS = "A descriptor's tiles are as large as its block: {blocks}."
    BLOCK_OF = "{block} of {tensor} in line {line}"
    NO_DESCRIPTOR = (
        "{where}: .{attribute} is a descriptor's, and this is none: the host makes one, "
        "TensorDescriptor.from_tensor(x, block), and gives it to the launch."
    )
    DESCRIPTOR = (
        "{where}: a descriptor is no pointer and no tile: x.load([row, column]) loads a tile, and "
        "x.store([row, column], tile) stores one."
    )
    TORCH_DTYPE = "{where}: torch's dtypes are not known in a kernel: use tl.float32."
    CONVERSION = "{where}: {function}(...) of a kernel's value: use .to(tl.float32), or another dtype of tl."
    COMPREHENSION = "{where}: a kernel cannot contain a list comprehension: use a tile, or tl.static_range."
    ASSIGNED_IN_PARTS = "{where}: a tile cannot be assigned to in parts: use tl.where."
    CONSTANT_TO = (
        "{where}: a value here is a constant, as tl.constexpr arguments are, and numbers that are 1 in a call: it has "
        "no .to, and tl.cast(value, tl.int64) does the same for constants too."
    )
    CONSTANT = (
        "{where}: a value here is a constant, as tl.constexpr arguments are, and numbers that are 1 in a call: it has "
        "no .{attribute}, and tl.multiple_of and its like say nothing of constants."
    )
    NO_JIT = (
        "{where}: a function that is called lacks @triton.jit; or a value stands where a constant is expected, such as "
        "a descriptor's last stride, which is 1."
    )
    TOO_MANY_ARGUMENTS = (
        "{where}: a function gets more arguments than it takes: a descriptor's load has one, the corner as a list, "
        "x.load([row, column])."
    )
    NO_LIST = (
        "{where}: a list is expected where a value stands: a descriptor's store gets the corner first, "
        "x.store([row, column], tile)."
    )
    WARPS = "{where}: num_warps has to be 1, 2, 4, 8, 16 or 32."
    OTHER = "{where}: {message}"

    # What the compiler makes a kernel of that no GPU of this kind has room for.
    DOES_NOT_FIT = "A block of {entry} does not fit {gpu}: {message}"
    TOO_MUCH_MEMORY = "A block needs {needed} bytes of {memory}; {gpu} has {limit}, so the launch would fail."
    TOO_MANY = "A block needs {needed} {resource}; {gpu} has {limit}, so the launch would fail."
    ADVICE_SMALLER = "Smaller tiles or fewer stages (num_stages=) need less."
    ADVICE_FEWER_WARPS = "Use fewer warps."


# What the compiler says, and what it means; the groups of a pattern are fields of the sentence.
PLAIN_WORDS = (
    (r"unsupported AST node type: Break\b", Compiler.BREAK),
    (r"unsupported AST node type: Continue\b", Compiler.CONTINUE),
    (r"unsupported AST node type: Import(?:From)?\b", Compiler.IMPORT),
    (r"unsupported AST node type: Lambda\b", Compiler.LAMBDA),
    (r"unsupported AST node type: Try\b", Compiler.TRY),
    (r"unsupported AST node type: Yield\b", Compiler.YIELD),
    (r"unsupported AST node type: (?P<statement>\w+)", Compiler.STATEMENT),
    (r"Boolean value of Tensor", Compiler.CONDITION),
    (r"Cannot access global variable (?P<name>\w+)", Compiler.GLOBAL),
    (r"Unsupported function referenced: <function (?P<name>\w+)", Compiler.PYTHON_FUNCTION),
    (r"Keyword argument (?P<name>\w+) was specified but unrecognised", Compiler.NO_PARAMETER),
    (r"is not string", Compiler.PRINT),
    (r"f-string", Compiler.F_STRING),
    (r"unsupported tensor index", Compiler.INDEX),
    (r"an address is indexed: (?P<name>.*)", Compiler.ADDRESS),
    (r"an axis is a value of the kernel: tl.max$", Compiler.MAX_OF_TWO),
    (r"an axis is a value of the kernel: tl.min$", Compiler.MIN_OF_TWO),
    (r"an axis is a value of the kernel: (?P<function>[\w.]+)$", Compiler.AXIS),
    (r"a block at one address: Value of (?P<pointer>.*)", Compiler.BLOCK_AT_ADDRESS),
    (r"a block at one address: \w+ of (?P<pointer>.*)", Compiler.MASK_AT_ADDRESS),
    (r"invalid axis (?P<axis>-?\d+)\. Expected 0 <=", Compiler.NO_AXIS),
    (r"invalid axis (?P<axis>-?\d+)\. Expected -1 <=", Compiler.ONLY_AXIS),
    (r"invalid axis (?P<axis>-?\d+)\. Expected -\d+ <= axis < (?P<count>\d+)", Compiler.NO_SUCH_AXIS),
    (r"tl.zeros lacks its dtype", Compiler.NO_DTYPE),
    (r"an accumulator of (?P<given>\w+) for (?P<wanted>\w+)", Compiler.ACCUMULATOR),
    (r"expected accumulator dtype (?P<wanted>\w+), got (?P<given>\w+)", Compiler.ACCUMULATOR),
    (r"a product of (?P<first>\[.*\]) and (?P<second>\[.*\])$", Compiler.PRODUCT_OF_SHAPES),
    (r"an accumulator of shape (?P<given>\[.*\]) for (?P<wanted>\[.*\])$", Compiler.ACCUMULATOR_SHAPE),
    (r"a tile of (?P<given>\[.*\]) for blocks of (?P<block>\[.*\]): (?P<name>.*)", Compiler.STORED_SHAPE),
    (r"'tensor' object has no attribute '(?P<attribute>load|store)'", Compiler.NO_DESCRIPTOR),
    (r"for \S+ 'tensor_descriptor'|and 'tensor_descriptor'|no attribute __\w+ of tensor_desc", Compiler.DESCRIPTOR),
    (r"'tensor_descriptor' object has no attribute '__|'tensor_descriptor_type' object has no", Compiler.DESCRIPTOR),
    (r"'torch.dtype' object", Compiler.TORCH_DTYPE),
    (r"(?P<function>float|int)\(\) argument must be", Compiler.CONVERSION),
    (r"only tuple comprehensions", Compiler.COMPREHENSION),
    (r"__setitem__ is not supported", Compiler.ASSIGNED_IN_PARTS),
    (r"'(?:constexpr|int)' object has no attribute 'to'", Compiler.CONSTANT_TO),
    (r"'constexpr' object has no attribute '(?P<attribute>\w+)'", Compiler.CONSTANT),
    (r"Did you forget to add @triton.jit", Compiler.NO_JIT),
    (r"multiple values for argument '_semantic'", Compiler.TOO_MANY_ARGUMENTS),
    (r"'tensor' has no len\(\)", Compiler.NO_LIST),
    (r"num_warps must be a power of 2", Compiler.WARPS),
)


ABOUT_SHAPES = (Compiler.PRODUCT_OF_SHAPES, Compiler.ACCUMULATOR_SHAPE, Compiler.STORED_SHAPE)
MOST_DESCRIPTORS = 4  # whose blocks a message lists
NOT_DEFINED = re.compile(r"(\w+) is not defined")


def is_known(failure: Failure) -> bool:
    """Whether the compiler's own words for this are known here, whoever raised them."""
    patterns = (NOT_DEFINED, CHANGES, *(one for one, _ in PLAIN_WORDS))
    return any(re.search(pattern, failure.message) for pattern in patterns)


def compiler_refusal(failure: Failure, submission: Submission, exercise: Exercise, model: GpuModel) -> Verdict:
    """Nothing runs on a GPU before this is mended, however right it is in the interpreter."""
    if failure.kind in foreign_kernels.KINDS:
        return foreign_kernels.foreign_kernel(failure)
    if failure.kind == "resources":
        return _does_not_fit(failure, submission, exercise, model)
    if failure.kind == "compile" and not is_known(failure):
        mistake = kernel_mistake(failure, submission, exercise)
        if mistake is not None:
            return mistake
    if (told := loop_variable(failure, submission.tree)) is not None:
        said, line = told
        return failed(Cause.DOES_NOT_COMPILE, said, source_line(submission, line), kind="error", line=line)
    if failure.kind == "not-recordable":
        id, where = Cause.NOT_RECORDABLE, f"Line {failure.line}" if failure.line else exercise.entry
    else:
        place = f"line {failure.line}" if failure.line else exercise.entry
        id, where = Cause.DOES_NOT_COMPILE, f"The compiler refuses {place}"
    said = _meaning(where, failure, submission)
    blocks = _blocks(submission) if said.sentence in ABOUT_SHAPES else None
    return failed(id, said, blocks, source_line(submission, failure.line), kind="error", line=failure.line)


def _meaning(where: str, failure: Failure, submission: Submission) -> Said:
    message = failure.message
    if wrapped := WRAPPED.match(message):
        message = wrapped[2]
    for pattern, sentence in PLAIN_WORDS:
        if found := re.search(pattern, message):
            evidence = {name: shortened(text) for name, text in found.groupdict().items()}
            if sentence is Compiler.GLOBAL and _is_function(found["name"], submission):
                sentence = Compiler.PYTHON_FUNCTION  # Triton 3.6, when asked a second time
            elif sentence is Compiler.STATEMENT:
                evidence["statement"] = evidence["statement"].lower()  # Python's With is written `with`
            return sentence(where=where, **evidence)
    if failure.line and (found := NOT_DEFINED.fullmatch(message)):
        return unknown_name(where, found[1], submission.tree, failure.line)
    text = shortened(MEMORY_ADDRESS.sub("", " ".join(message.split()))).rstrip(".") or failure.type
    return Compiler.OTHER(where=where, message=text if text.endswith("?") else f"{text}.")


def _blocks(submission: Submission) -> Said | None:
    """Where the blocks of the file's descriptors are written; None where it makes none, or more than anyone reads."""
    made = descriptors_made(submission.tree)
    if not made or len(made) > MOST_DESCRIPTORS or not all(one.block for one in made):
        return None
    listed = (Compiler.BLOCK_OF(block=one.block, tensor=one.tensor, line=one.line).text for one in made)
    return Compiler.BLOCKS(blocks=", ".join(listed))


def _is_function(name: str, submission: Submission) -> bool:
    return any(isinstance(node, ast.FunctionDef) and node.name == name for node in submission.tree.body)


def _does_not_fit(failure: Failure, submission: Submission, exercise: Exercise, model: GpuModel) -> Verdict:
    found = NO_ROOM.search(failure.message)
    if not found:
        said = Compiler.DOES_NOT_FIT(entry=exercise.entry, gpu=model.name, message=failure.message)
        return failed(Cause.DOES_NOT_FIT, said, kind="cause")
    numbers = dict(needed=int(found[2]), limit=int(found[3]), gpu=model.name)
    if "memory" in found[1]:
        said, advice = Compiler.TOO_MUCH_MEMORY(memory=found[1], **numbers), Compiler.ADVICE_SMALLER()
    else:
        said, advice = Compiler.TOO_MANY(resource=found[1], **numbers), Compiler.ADVICE_FEWER_WARPS()
    place = source_line(submission, failure.line)
    return failed(Cause.DOES_NOT_FIT, said, advice, place, kind="cause", line=failure.line)
