"""Words of Python, torch and NumPy that beginners write in kernels: the allowed words, and replacements for others."""

from __future__ import annotations

# The compiler knows these, and a constexpr function takes Python's. Other names lead anywhere, or nowhere in a kernel.
BUILTINS = frozenset({
    "abs", "all", "any", "bool", "dict", "divmod", "enumerate", "float", "int", "isinstance", "len", "list", "map",
    "max", "min", "pow", "print", "range", "reversed", "round", "set", "slice", "sorted", "str", "sum", "super",
    "tuple", "zip", "None", "True", "False", "Ellipsis", "NotImplemented",
})  # fmt: skip

# torch's names of dtypes -> the names of tl
TORCH_DTYPES = {
    "float16": "float16", "half": "float16", "bfloat16": "bfloat16", "float32": "float32", "float": "float32",
    "float64": "float64", "double": "float64", "bool": "int1", "uint8": "uint8", "int8": "int8", "int16": "int16",
    "int32": "int32", "int": "int32", "int64": "int64", "long": "int64",
}  # fmt: skip

# The word of torch, of NumPy or of a beginner -> how a kernel says it.
SAID_IN_KERNELS = {
    "bfloat16": "x.to(tl.bfloat16)", "bf16": "tl.bfloat16", "bmm": "tl.dot(a, b)",
    "clamp": "tl.clamp(x, min, max)", "double": "x.to(tl.float64)", "empty": "tl.zeros(shape, dtype)",
    "expand": "x[:, None] or x[None, :]", "float": "x.to(tl.float32)", "fp16": "tl.float16", "fp32": "tl.float32",
    "fp64": "tl.float64", "half": "x.to(tl.float16)", "int": "x.to(tl.int32)", "long": "x.to(tl.int64)",
    "masked_fill": "tl.where(mask, a, b)", "matmul": "tl.dot(a, b)", "mean": "tl.sum(x, 0) over their number",
    "mm": "tl.dot(a, b)", "newaxis": "None, as in x[:, None]", "outer": "a column times a row, [:, None] "
    "and [None, :]", "pow": "x * x", "relu": "tl.where, or tl.maximum", "silu": "x * tl.sigmoid(x)", "square": "x * x",
    "stride": "an argument of the kernel, as stride_xm", "t": "tl.trans(x)", "tanh": "made of tl.exp",
    "transpose": "tl.trans(x)", "unsqueeze": "x[:, None] or x[None, :]",
}  # fmt: skip
