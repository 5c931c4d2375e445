"""The rules by which Triton compiles a kernel for a launch's arguments, and passes them to its machine code.

All of them hold for Triton 3.6 to 3.9, unless they say otherwise. Triton has them in runtime/jit.py (types, constants),
backends/driver.py and backends/nvidia/driver.py (parameters and the launch itself). The names of Triton that the grader
imports, reads or replaces stand in child/triton_api.py.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

# ---- what a kernel is compiled for ----------------------------------------------------------------------------------

# Options of a launch that change the machine code made of a kernel's text, each with its type.
LAUNCH_OPTIONS = {
    "num_warps": "int", "num_stages": "int", "num_ctas": "int", "maxnreg": "int | None", "enable_fp_fusion": "bool",
    "debug": "bool", "sanitize_overflow": "bool", "launch_cooperative_grid": "bool", "launch_pdl": "bool",
    "default_dot_input_precision": "str", "max_num_imprecise_acc_default": "int | None",
}  # fmt: skip

# A signature gives each argument a type as text: "i32", "*fp32" or "*kfp32" of a tensor, "tensordesc<fp16[64, 64]>" of
# a descriptor that the host made, "constexpr" of a constant; a tuple has a tuple of them.
TYPE = re.compile(r"(?:\*k?){0,2}\w{1,20}|tensordesc<\w{1,20}\[\d{1,9}(?:, ?\d{1,9}){0,7}\]>", re.ASCII)
_NUMBER = re.compile(r"[iu]\d+|fp\d+|f32|bf16")
_DESCRIBED = re.compile(r"tensordesc[\w]*<(\w+)")
NUMBER_BYTES = {
    "i1": 1, "u1": 1, "i8": 1, "u8": 1, "i16": 2, "u16": 2, "i32": 4, "u32": 4, "i64": 8, "u64": 8,
    "fp16": 2, "bf16": 2, "f32": 4, "fp32": 4, "fp64": 8,
}  # fmt: skip
ATTRIBUTES = ("tt.divisibility",)  # of an argument, which a launch passes on to the front end


def is_constant(kind: str | tuple[Any, ...]) -> bool:
    """Returns whether an argument of this type is compiled into the kernel: constexpr, and numbers that are 1, None."""
    return kind == "constexpr"


def is_pointer(kind: str) -> bool:
    return kind.startswith("*")


def is_number(kind: str) -> bool:
    return _NUMBER.fullmatch(kind) is not None


def described_element(kind: str) -> str:
    """Returns the type of a descriptor's elements, as "fp16"; "" for the type of another argument."""
    match = _DESCRIBED.match(kind)
    return match[1] if match else ""


def sizes_and_strides(
    name: str, shape: Iterable[int], strides: Iterable[int], size_type: str = "i32"
) -> list[tuple[str, str, str]]:
    """Returns the arguments that follow a descriptor's in a kernel's text, each as (name, type, value)."""
    sizes = [(f"{name}.shape", size_type, repr(size)) for size in shape]
    return sizes + [(f"{name}.strides", "i64", repr(stride)) for stride in strides]


# ---- what machine code takes ----------------------------------------------------------------------------------------

POINTER_BYTES, TENSOR_MAP_BYTES = 8, 128  # parameters; a descriptor that a kernel makes is a tensor map, too
FIRST_WITH_TENSOR_MAPS = 90  # the arch from which on descriptors are tensor maps
SCRATCH = ("global scratch", "profile scratch")  # two pointers behind all other parameters
# Element types as the compiler numbers them -> as the CUDA driver does; the same except for three.
TENSOR_MAP_TYPES = {**{number: number for number in range(16)}, 8: 10, 9: 8, 10: 9}
TENSOR_MAP_TF32 = 11  # as the CUDA driver numbers it: since Triton 3.9 a descriptor may ask for it


def parts_of_a_descriptor(
    name: str, shape: Iterable[int], strides: Iterable[int], settings: list[bool]
) -> list[tuple[str, str, str]]:
    """Returns the parameters behind a descriptor's address, where there are no tensor maps: (name, type, value).

    settings: as many as `settings_taken` says of two: elements outside of the tensor are NaN; floats are rounded to
    tf32.
    """
    flags = [(f"{name}.flags", "i1", repr(int(setting))) for setting in settings]
    return sizes_and_strides(name, shape, strides, "i64") + flags


def settings_taken(parameters: int, arguments: int, ranks: list[int]) -> int:
    """Returns the number of settings of each descriptor among the parameters: one before Triton 3.9, two since.

    parameters: how many the machine code takes. arguments: how many the text takes. ranks: of the descriptors.
    """
    others = arguments + 2 * sum(ranks) + len(SCRATCH)
    return (parameters - others) // max(len(ranks), 1)


@dataclass
class Metadata:
    """The compiler's data that a launch needs, named as Triton names them; sizes in bytes."""

    name: str = ""
    shared: int = 0
    num_warps: int = 0  # of all warp groups together, where the compiler has made several
    num_stages: int = 0
    num_ctas: int = 1
    launch_cooperative_grid: bool = False
    launch_pdl: bool = False
    tmem_size: int | None = None  # in columns of tensor memory
    global_scratch_size: int = 0  # per program and block of a cluster
    global_scratch_align: int = 1
    profile_scratch_size: int = 0
    profile_scratch_align: int = 1


TENSOR_MAP_FORMS = "tensordesc_meta"  # the compiler's data on descriptors; absent or empty without tensor maps


@dataclass
class TensorMapForm:
    """The form of a descriptor's tensor map that the machine code expects; the compiler numbers types and swizzles."""

    swizzle: int
    elem_size: int  # bytes
    elem_type: int
    block_size: list[int]
    fp4_padded: bool = False
    is_im2col: bool = False


# ---- the launch itself ----------------------------------------------------------------------------------------------

WARP_SIZE = 32  # threads of a warp
MOST_THREADS = 1024  # of a block
DEFAULT_SHARED = 48 << 10  # bytes of dynamic shared memory that a block may use without asking
LARGE_CLUSTER = 16  # blocks; a cluster of this size has to be allowed
# Triton 3.9 clears a bit of a tensor map's second word, for tensors of fewer bytes, on CUDA drivers up to this version.
SMALL_MAP_BYTES, SMALL_MAP_DRIVER, SMALL_MAP_BIT = 128 << 10, 13010, 1 << 21
