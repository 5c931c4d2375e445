"""Explains kernels that cannot run on a GPU: the compiler refuses them, or a launch plan cannot hold them."""

from __future__ import annotations

import ast
import difflib
import re

from grader.course.exercise import Exercise
from grader.explain import foreign_kernels
from grader.explain.causes import Cause
from grader.explain.evidence import source_line
from grader.explain.failures import kernel_mistake, shortened
from grader.explain.loop_variables import CHANGES, loop_variable
from grader.explain.unknown_names import unknown_name
from grader.explain.verdict import Verdict, failed
from grader.sentences import Fields, Said, Sentence
from grader.submission.text import Submission, descriptors_made, line_of_division
from grader.wire.messages import Failure, GpuModel

WRAPPED = re.compile(r"^\w+\((['\"])(.*?)\1?\)?$", re.DOTALL)
MEMORY_ADDRESS = re.compile(r" at 0x[0-9a-f]+")
NO_ROOM = re.compile(r"out of resource: ([\w ]+), Required: (\d{1,18}), Hardware limit: (\d{1,18})")

# The message of grader/front_end/called_functions.py about an argument that a function of tl lacks, or does not know.
ARGUMENTS = r"^arguments of (?P<function>[\w.]+): (?P<what>[\w ]+): (?P<name>\w+): (?P<names>.*)"
# A size as the compiler writes it: an item of ['constexpr[32]', 'constexpr[16]'], or of ['32', '16'].
SIZES_IN_TEXT = re.compile(r"'?(?:constexpr\[(\d+)\]|(\d+))'?")
OTHER_NAMES = {"dim": "axis", "keepdim": "keep_dims", "keepdims": "keep_dims"}  # tl's names for torch's and numpy's
EXAMPLES = {
    "tl.arange": "tl.arange(0, BLOCK_N)",
    "tl.program_id": "tl.program_id(0)",
    "tl.where": "tl.where(condition, a, b)",
}

# Kinds of failures that stop a call before anything is launched.
BEFORE_ANY_LAUNCH = ("compile", "resources", "not-recordable", *foreign_kernels.KINDS)


class Compiler(Sentence):
    """Sentences that put the compiler's messages in plain words. {where}: "The compiler refuses line 12"."""

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
    GLOBAL = (
        "{where}: a kernel sees no globals, and {name} is one: pass it as an argument that is marked tl.constexpr, or "
        "write {name} = tl.constexpr(...) where it is set: an annotation is not enough."
    )
    PYTHON_FUNCTION = "{where}: the kernel calls {name}, a Python function: give it @triton.jit."
    KERNEL_NAME = "{where}: a kernel's name is made of a to z, A to Z, 0 to 9 and _, and this one is {name}."
    NO_PARAMETER = "{where}: the launch passes {name}, which is no parameter of the kernel and no option of Triton's."
    PRINT = (
        '{where}: print in a kernel wants a text first, as tl.device_print("x", x), and a GPU; course trace shows what '
        "each line makes, without one."
    )
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
    ONLY_AXIS = "{where}: there is no axis {axis} here: the only one is axis 0."
    NO_AXIS = "{where}: there is no axis {axis} here: this is one value, and no block."
    NO_DTYPE = "{where}: tl.zeros wants a dtype too, as in tl.zeros((BLOCK_N,), dtype=tl.float32)."
    ACCUMULATOR = (
        "{where}: tl.dot(a, b, acc) makes its sums in {wanted}, and this accumulator is {given}: make it in {wanted}, "
        "and convert what you store, with .to()."
    )
    PRODUCT_OF_SHAPES = "{where}: tl.dot multiplies [m, k] by [k, n], and these tiles are {first} and {second}."
    ACCUMULATOR_SHAPE = "{where}: tl.dot(a, b, acc) makes a tile of {wanted} here, and this accumulator is {given}."
    STORED_SHAPE = "{where}: {name} stores tiles as large as its block, {block}, and this one is {given}."
    PRODUCT_BY_STAR = (
        "{where}: * multiplies element by element, and these tiles are {first} and {second}: tl.dot(a, b, acc) makes "
        "the product of matrices and adds it to acc."
    )
    DTYPES_OF_PRODUCT = (
        "{where}: tl.dot multiplies tiles of one dtype, and these are {first} and {second}: convert one, as in "
        "tl.dot(p.to(v.dtype), v, acc)."
    )
    CORNER_OF_TILES = (
        "{where}: a corner is two numbers, the row and the column of a tile's first element, and here one of them is a "
        "tile: the descriptor knows the others."
    )
    CORNER_FORGOTTEN = (
        "{where}: a descriptor's {function} wants the corner, x.load([row, column]) or x.store([row, column], tile)."
    )
    NO_MASK = (
        "{where}: a descriptor's {function} takes no {name}: what lies outside of its shape is loaded as 0, and is not "
        "stored."
    )
    BLOCKS = "A descriptor's tiles are as large as its block: {blocks}."
    BLOCK_OF = "{block} of {tensor} in line {line}"
    NO_DESCRIPTOR = (
        "{where}: .{attribute} is a descriptor's, and this is none: the host makes one, "
        "TensorDescriptor.from_tensor(x, block), and gives it to the launch."
    )
    NO_ATTRIBUTE = (
        "{where}: values of a kernel have no .{attribute}. tl.max(x, 0) is the maximum itself, x.shape the block's "
        "sizes; those of tensors are arguments of the kernel, as M and N."
    )
    DESCRIPTOR = (
        "{where}: a descriptor is no pointer and no tile: x.load([row, column]) loads a tile, and "
        "x.store([row, column], tile) stores one."
    )
    TORCH_DTYPE = "{where}: torch's dtypes are not known in a kernel: use tl.float32."
    CONVERSION = "{where}: {function}(...) of a kernel's value: use .to(tl.float32), or another dtype of tl."
    COMPREHENSION = (
        "{where}: a kernel cannot contain a list comprehension. Numbers counted up are a tile, tl.arange(0, BLOCK_N), "
        "and what is done to a tile is done to all its numbers at once."
    )
    LIST = (
        "{where}: a kernel has no list that grows, or that a tile becomes. A tile holds many numbers as it is, and "
        "what a loop gathers is added up in a variable."
    )
    ASSIGNED_IN_PARTS = "{where}: neither a tile nor a list can be assigned to in parts: use tl.where."
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
    WARPS = "{where}: num_warps is {warps} in this call, and it has to be 1, 2, 4, 8, 16 or 32."
    OPTION = "{where}: {option} is {value} in this call, and it has to be {kind}."
    CHAINED = "{where}: a comparison here has two sides: 0 <= rows < M is written (0 <= rows) & (rows < M)."
    NO_OPERATOR = "{where}: a kernel has no @: tl.dot(a, b, acc) multiplies two tiles and adds the product to acc."
    NO_IN = "{where}: a kernel has no `{operator}`: compare with each, as in (a == b) | (a == c)."
    NO_POWER = "{where}: values of a kernel have no **: x * x is the square, and tl.sqrt(x) the root."
    OF_BITS = "{where}: {operator} is for whole numbers and masks, and here it meets {dtype}: x * x is the square."
    OF_WHOLE_NUMBERS = (
        "{where}: // and % take whole numbers, and here they meet {dtype}. / divides such numbers, and makes them of "
        "whole ones too, which // and tl.cdiv do not."
    )
    OFFSET = (
        "{where}: {name} is an address, and offsets are whole numbers: here one is {dtype}. / makes such a number of "
        "whole ones, // and tl.cdiv do not."
    )
    BOUNDS = "{where}: range takes whole numbers, and / makes others of them: // and tl.cdiv do not."
    DIVIDES = "Line {line} divides with /."
    NOT_LOADED = "{where}: {name} is an address, and here a number is wanted: tl.load({name}) reads what lies there."
    NOT_LOADED_BOTH = (
        "{where}: {name} and {other} are addresses, and here numbers are wanted: tl.load({name}) reads what lies there."
    )
    ADDRESS_FOR_NUMBERS = "{where}: an address stands where numbers are wanted: tl.load(address) reads what lies there."
    NOT_CALLED = (
        "{where}: a function stands here and is not called: with its arguments, as in tl.program_id(0), it gives a "
        "value."
    )
    MASK_OF_NUMBERS = (
        "{where}: the mask holds numbers, and it has to say of each lane whether it takes part: offsets < N does."
    )
    OFFSETS_APART = (
        "{where}: an argument stands where none belongs. Offsets are added to an address: tl.load(x_ptr + offsets, "
        "mask=mask), tl.store(z_ptr + offsets, z, mask=mask)."
    )
    ITERATED = "{where}: a `for` of a kernel counts, with range or tl.static_range: a tile has all its lanes at once."
    HOST_FUNCTION = "{where}: triton.{name} is for the host: in a kernel it is tl.{name}."
    HOST_ONLY = "{where}: triton.{name} is for the host: what it gives is passed to the kernel, as a tl.constexpr."
    MATH = "{where}: math computes with Python's numbers, and this is a value of the kernel: use tl.{name}."
    LENGTH = "{where}: values of a kernel have no len: a block has as many lanes as it was made with, as BLOCK_N."
    SPLIT = (
        "{where}: tl.split takes the two halves of a tile whose last axis has 2 elements, and this one is {shape}: "
        "tl.reshape(x, (..., 2)) makes such a tile, of neighbours."
    )
    NO_SHAPE = "{where}: {name} is an address and has no shape: sizes are arguments of the kernel, as M and N."
    ONE_VALUE = "{where}: this is one value and no block: [:, None] and [None, :] are for blocks."
    SHAPE_IN_PARTS = (
        "{where}: the shape of tl.zeros is one argument, a tuple, as in tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)."
    )
    LANES = (
        "{where}: the length of tl.arange has to be a power of two: triton.next_power_of_2(n) makes one on the host."
    )
    SIZES = "{where}: each size of a tile has to be a power of two, and -1 stands for none."
    NO_PRODUCT = (
        "{where}: tl.dot multiplies a tile [M, K] by a tile [K, N]: as many columns as the other has rows. These are "
        "{first} and {second}."
    )
    SMALL_PRODUCT = (
        "{where}: tl.dot wants at least {least} columns in its first tile, which are the rows of the second. These are "
        "{first} and {second}."
    )
    RANKS = (
        "{where}: shapes with unlike numbers of axes meet, {first} and {second}: x[:, None] makes a column of a line, "
        "and x[None, :] a row."
    )
    VALUES_AND_ADDRESSES = (
        "{where}: values of shape {first} go to addresses of shape {second}: the addresses of a tile are made of a "
        "column and a row, as with rows[:, None] and cols[None, :]."
    )
    TO_A_POINTER = "{where}: the dtype of an address is that of a pointer: c_ptr.dtype.element_ty is its elements'."
    ELEMENT_TYPE = (
        "{where}: .element_ty is for the dtype of a pointer: that of a tile, or of a descriptor as c_desc.dtype, is "
        "the elements' already."
    )
    DTYPE_CALLED = (
        "{where}: a dtype is not called: x.to(tl.float32) converts a value, and tl.full((), 0.5, tl.float32) makes one "
        "of a number."
    )
    TEXT_FOR_DTYPE = "{where}: a text stands for a dtype: tl's have names of their own, as tl.float32."
    ONLY_FP32 = "{where}: a function gets {dtype} that computes in fp32 only: convert before, with .to(tl.float32)."
    TUPLE = "{where}: a list or tuple stands where one block, or one value, is expected."
    PROPAGATE_NAN = "{where}: propagate_nan is tl.PropagateNan.ALL, or tl.PropagateNan.NONE."
    UNKNOWN_ARGUMENT = "{where}: {function} has no argument {name}. It takes {names}."
    MISSPELT_ARGUMENT = "{where}: {function} has no argument {name}. Is {near} meant?"
    MISSING_ARGUMENT = "{where}: {function} lacks the argument {name}: it takes {names}."
    MISSING_WITH_EXAMPLE = "{where}: {function} lacks the argument {name}, as in {example}."
    ARGUMENT_TWICE = "{where}: {function} gets {name} twice, by its place and by its name: it takes {names}."
    MANY_ARGUMENTS = "{where}: {function} gets too many arguments: it takes {names}."
    OTHER = "{where}: {message}"

    # Kernels that need more memory or registers than a GPU of this kind has.
    DOES_NOT_FIT = "A block of {entry} does not fit {gpu}: {message}"
    TOO_MUCH_MEMORY = "A block needs {needed} bytes of {memory}; {gpu} has {limit}, so the launch would fail."
    TOO_MANY = "A block needs {needed} {resource}; {gpu} has {limit}, so the launch would fail."
    ADVICE_SMALLER = "Smaller tiles or fewer stages (num_stages=) need less."
    ADVICE_FEWER_WARPS = "Use fewer warps."


# Patterns of the compiler's messages, and the sentence for each; the groups of a pattern are fields of the sentence.
PLAIN_WORDS: tuple[tuple[str | re.Pattern[str], Compiler], ...] = (
    (r"unsupported AST node type: Break\b", Compiler.BREAK),
    (r"unsupported AST node type: Continue\b", Compiler.CONTINUE),
    (r"unsupported AST node type: Import(?:From)?\b", Compiler.IMPORT),
    (r"unsupported AST node type: Lambda\b", Compiler.LAMBDA),
    (r"unsupported AST node type: Try\b", Compiler.TRY),
    (r"unsupported AST node type: Yield\b", Compiler.YIELD),
    (r"unsupported AST node type: (?P<statement>\w+)", Compiler.STATEMENT),
    (r"Boolean value of Tensor", Compiler.CONDITION),
    (r"^invalid function identifier: (?P<name>.*)", Compiler.KERNEL_NAME),
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
    (r"a product by \*: (?P<first>\[.*\]) and (?P<second>\[.*\])$", Compiler.PRODUCT_BY_STAR),
    (r"must be same dtype\. Got (?P<first>\w+) and (?P<second>\w+)", Compiler.DTYPES_OF_PRODUCT),
    (r"an accumulator of shape (?P<given>\[.*\]) for (?P<wanted>\[.*\])$", Compiler.ACCUMULATOR_SHAPE),
    (r"a tile of (?P<given>\[.*\]) for blocks of (?P<block>\[.*\]): (?P<name>.*)", Compiler.STORED_SHAPE),
    (r"'tensor' object has no attribute '(?P<attribute>load|store)'", Compiler.NO_DESCRIPTOR),
    (r"^'tensor' object has no attribute '(?P<attribute>\w+)'", Compiler.NO_ATTRIBUTE),
    (r"for \S+ 'tensor_descriptor'|and 'tensor_descriptor'|no attribute __\w+ of tensor_desc", Compiler.DESCRIPTOR),
    (r"'tensor_descriptor' object has no attribute '__|'tensor_descriptor_type' object has no", Compiler.DESCRIPTOR),
    (r"^a descriptor for an address$", Compiler.DESCRIPTOR),
    (r"^'dtype' object has no attribute 'element_ty'", Compiler.ELEMENT_TYPE),
    (r"'torch.dtype' object", Compiler.TORCH_DTYPE),
    (r"(?P<function>float|int)\(\) argument must be", Compiler.CONVERSION),
    (r"only tuple comprehensions", Compiler.COMPREHENSION),
    (r"^a list that grows$|^'(?:list|tuple)' object has no attribute", Compiler.LIST),
    (r"^'\w+' is not in list$", Compiler.LIST),  # what 3.6 says of .append
    (r"__setitem__ is not supported", Compiler.ASSIGNED_IN_PARTS),
    (r"'(?:constexpr|int)' object has no attribute 'to'", Compiler.CONSTANT_TO),
    (r"'constexpr' object has no attribute '(?P<attribute>\w+)'", Compiler.CONSTANT),
    (r"Did you forget to add @triton.jit", Compiler.NO_JIT),
    (r"multiple values for argument '_semantic'", Compiler.TOO_MANY_ARGUMENTS),
    (r"^Expected a scalar in shape/strides/offsets", Compiler.CORNER_OF_TILES),
    (r"tensor_descriptor_base\.(?P<function>\w+)\(\) missing", Compiler.CORNER_FORGOTTEN),
    (
        r"tensor_descriptor_base\.(?P<function>\w+)\(\) got an unexpected keyword argument '(?P<name>\w+)'",
        Compiler.NO_MASK,
    ),
    (r"'tensor' has no len\(\)", Compiler.NO_LIST),
    (r"^num_warps must be a power of 2: (?P<warps>.*)", Compiler.WARPS),
    (r"^option (?P<option>\w+) has to be (?P<kind>[\w ]+): (?P<value>.*)", Compiler.OPTION),
    (r"simultaneous multiple comparison", Compiler.CHAINED),
    (r"^no operator: @$", Compiler.NO_OPERATOR),
    (r"^no operator: \*\*$", Compiler.NO_POWER),
    (r"^no operator: (?P<operator>(?:not )?in)$", Compiler.NO_IN),
    (r"^bits of (?P<dtype>\w+): (?P<operator>.)$", Compiler.OF_BITS),
    (r"^unexpected type (?P<dtype>fp\d+|bf16)", Compiler.OF_WHOLE_NUMBERS),
    (r"^an offset of (?P<dtype>\w+): (?P<name>.*)", Compiler.OFFSET),
    (r"^a number is wanted: (?P<name>.*)", Compiler.NOT_LOADED),
    (r"^no sum: (?P<name>.*): (?P<other>.*)", Compiler.NOT_LOADED_BOTH),
    (r"cannot add pointers together|unary \S+ \(pointer<|but got pointer", Compiler.ADDRESS_FOR_NUMBERS),
    (r"^invalid operands of type (?:pointer<|\S+ and pointer<)", Compiler.ADDRESS_FOR_NUMBERS),
    (r"^cannot cast pointer<", Compiler.ADDRESS_FOR_NUMBERS),
    (r"^a function that is not called", Compiler.NOT_CALLED),
    (r"Mask must have boolean scalar type", Compiler.MASK_OF_NUMBERS),
    (r"`boundary_check` argument is not supported", Compiler.OFFSETS_APART),
    (r"^(?:load|store)\(\) takes from .* positional arguments but", Compiler.OFFSETS_APART),  # Triton 3.9
    (r"^arguments of tl\.(?:load|store): twice: mask:", Compiler.OFFSETS_APART),
    (r"For loop bounds and step must all be ints", Compiler.BOUNDS),
    (r"Only `range` and `static_range` iterators", Compiler.ITERATED),
    (r"^a function of the host: (?P<name>cdiv)", Compiler.HOST_FUNCTION),
    (r"^a function of the host: (?P<name>\w+)", Compiler.HOST_ONLY),
    (r"^a tile in math: (?P<name>\w+)", Compiler.MATH),
    (r"^no length: len", Compiler.LENGTH),
    (r"^a split of (?P<shape>\[.*\])$", Compiler.SPLIT),
    (r"^no shape: (?P<name>.*)", Compiler.NO_SHAPE),
    (r"too many indices for tensor of rank 0", Compiler.ONE_VALUE),
    (r"^no tuple for a shape", Compiler.SHAPE_IN_PARTS),
    (r"arange's range must be a power of 2", Compiler.LANES),
    (r"Shape element \d+ must be a power of 2", Compiler.SIZES),
    (r"^no product of (?P<first>\[.*\]) and (?P<second>\[.*\])", Compiler.NO_PRODUCT),
    (r"^a small product of (?P<first>\[.*\]) and (?P<second>\[.*\]): (?P<least>\d+)", Compiler.SMALL_PRODUCT),
    (r"Cannot broadcast, rank mismatch: (?P<first>\[.*\]), (?P<second>\[.*\])", Compiler.RANKS),
    (
        r"Expected pointer argument to have shape (?P<first>\[.*\]) but got (?P<second>\[.*\])",
        Compiler.VALUES_AND_ADDRESSES,
    ),
    (r"^cannot cast .* to (?:<\[.*\], )?pointer<", Compiler.TO_A_POINTER),
    (r"'dtype' object is not callable", Compiler.DTYPE_CALLED),
    (r"'str' object has no attribute '(?:is_int|to_ir)'", Compiler.TEXT_FOR_DTYPE),
    (r"Expected dtype \['fp32', 'fp64'\] but got (?P<dtype>(?!fp16)\w+)", Compiler.ONLY_FP32),
    (r"^cannot convert .* of type .*tuple|^'tuple_type' object has no attribute", Compiler.TUPLE),
    (r"Unexpected propagate_nan", Compiler.PROPAGATE_NAN),
    (ARGUMENTS, Compiler.UNKNOWN_ARGUMENT),
)


ABOUT_SHAPES = (Compiler.PRODUCT_OF_SHAPES, Compiler.ACCUMULATOR_SHAPE, Compiler.STORED_SHAPE)
MOST_DESCRIPTORS = 4  # a message lists the blocks of this many descriptors at most
OF_DIVISIONS = (Compiler.OF_WHOLE_NUMBERS, Compiler.OFFSET, Compiler.BOUNDS)
# Exceptions of grader/front_end: what a kernel asks for is refused here, whether the compiler would take it or not.
OURS = ("NotAllowed", "NotFixed", "NotEvaluated", "CallsItself")
NOT_DEFINED = re.compile(r"(\w+) is not defined")


def is_known(failure: Failure) -> bool:
    """Returns whether a sentence here explains the failure's message, whether the compiler raised it or not."""
    patterns = (NOT_DEFINED, CHANGES, *(one for one, _ in PLAIN_WORDS))
    return any(re.search(pattern, failure.message) for pattern in patterns)


def compiler_refusal(failure: Failure, submission: Submission, exercise: Exercise, model: GpuModel) -> Verdict:
    """Returns the verdict on a kernel that cannot run on a GPU, even if it is right in the interpreter."""
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
        if failure.type in OURS:
            where = f"In {place}"
    said = _meaning(where, failure, submission)
    line = line_of_division(submission.tree, failure.line) if said.sentence in OF_DIVISIONS else 0
    if said.sentence is Compiler.OFFSET and not line:  # x + y, where x was never loaded
        said = Compiler.NOT_LOADED(where=where, name=said.evidence["name"])
    if line:
        divides = Compiler.DIVIDES(line=line) if line != failure.line else None
        return failed(id, said, divides, source_line(submission, line), kind="error", line=line)
    blocks = _blocks(submission) if said.sentence in ABOUT_SHAPES else None
    return failed(id, said, blocks, source_line(submission, failure.line), kind="error", line=failure.line)


def _meaning(where: str, failure: Failure, submission: Submission) -> Said:
    message = failure.message
    if wrapped := WRAPPED.match(message):
        message = wrapped[2]
    for pattern, sentence in PLAIN_WORDS:
        if found := re.search(pattern, message):
            evidence = {name: shortened(text) for name, text in found.groupdict().items()}
            if sentence is Compiler.UNKNOWN_ARGUMENT:
                return _of_arguments(where, **evidence)
            if sentence in (Compiler.RANKS, Compiler.VALUES_AND_ADDRESSES):
                evidence = {name: _sizes(text) for name, text in evidence.items()}
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
    """Returns the sentence that lists the descriptors' blocks; None for no descriptor, many, or unclear blocks."""
    made = descriptors_made(submission.tree)
    if not made or len(made) > MOST_DESCRIPTORS or not all(one.block for one in made):
        return None
    listed = (Compiler.BLOCK_OF(block=one.block, tensor=one.tensor, line=one.line).text for one in made)
    return Compiler.BLOCKS(blocks=", ".join(listed))


def _of_arguments(where: str, function: str, what: str, name: str, names: str) -> Said:
    """Returns the sentence about an argument of tl's function that is unknown, missing or given twice."""
    if what == "unknown":
        near = OTHER_NAMES.get(name) or next(iter(difflib.get_close_matches(name, names.split(", "), 1, 0.7)), "")
        if near in names.split(", "):
            return Compiler.MISSPELT_ARGUMENT(where=where, function=function, name=name, near=near)
        return Compiler.UNKNOWN_ARGUMENT(where=where, function=function, name=name, names=names)
    if what == "missing" and function in EXAMPLES:
        example = EXAMPLES[function]
        return Compiler.MISSING_WITH_EXAMPLE(where=where, function=function, name=name, example=example)
    if what == "too many":
        return Compiler.MANY_ARGUMENTS(where=where, function=function, names=names)
    sentence = Compiler.MISSING_ARGUMENT if what == "missing" else Compiler.ARGUMENT_TWICE
    return sentence(where=where, function=function, name=name, names=names)


def _sizes(text: str) -> str:
    """Returns "[32, 16]" for ['constexpr[32]', 'constexpr[16]'], and for ['32', '16']."""
    return f"[{', '.join(one[1] or one[2] for one in SIZES_IN_TEXT.finditer(text))}]"


def _is_function(name: str, submission: Submission) -> bool:
    return any(isinstance(node, ast.FunctionDef) and node.name == name for node in submission.tree.body)


def _does_not_fit(failure: Failure, submission: Submission, exercise: Exercise, model: GpuModel) -> Verdict:
    found = NO_ROOM.search(failure.message)
    if not found:
        said = Compiler.DOES_NOT_FIT(entry=exercise.entry, gpu=model.name, message=failure.message)
        return failed(Cause.DOES_NOT_FIT, said, kind="cause")
    numbers: Fields = dict(needed=int(found[2]), limit=int(found[3]), gpu=model.name)
    if "memory" in found[1]:
        said, advice = Compiler.TOO_MUCH_MEMORY(memory=found[1], **numbers), Compiler.ADVICE_SMALLER()
    else:
        said, advice = Compiler.TOO_MANY(resource=found[1], **numbers), Compiler.ADVICE_FEWER_WARPS()
    place = source_line(submission, failure.line)
    return failed(Cause.DOES_NOT_FIT, said, advice, place, kind="cause", line=failure.line)
