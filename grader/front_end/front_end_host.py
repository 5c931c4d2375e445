"""Answers requests for the text of a kernel: of one file at a time.

    parent -> process    text  {filename, recipe, small_dots}    the blob is the file
    process -> parent    text  {failure, fits, unfit}            the blob is the kernel's text

The recipe's "set" holds the constants of the file that have another value in this call.
"""

from __future__ import annotations

import contextlib
import errno
import sys
from dataclasses import asdict

from grader.front_end.allowed_attributes import guard_builtins
from grader.front_end.compile_failure import compile_failure, text_of
from grader.front_end.conditions import refuse_tiles_as_conditions
from grader.front_end.file_kernels import FileKernels, NotInFile
from grader.front_end.kernel_text import dots_of_any_size, parse_each_function_once
from grader.front_end.told_values import NotPlain
from grader.front_end.triton_text_api import CompilationError, CompileTimeAssertionFailure, GPUTarget, target_here
from grader.wire.frames import JsonObject
from grader.wire.messages import FOREIGN_KERNEL, NOT_PLAIN, Failure

FULL = (errno.ENOSPC, errno.EDQUOT)  # the disk is full, which is a fault of the machine


class FrontEndHost:
    """Makes texts for one GPU's target. After the first exception that is not the compiler's it makes no more."""

    def __init__(self) -> None:
        self._target: GPUTarget = target_here()
        self._read: tuple[str, bytes] | None = None
        self._kernels: FileKernels | None = None
        self._unfit = False
        parse_each_function_once()
        guard_builtins()
        refuse_tiles_as_conditions()

    def handle(self, header: JsonObject, blob: bytes) -> tuple[JsonObject, bytes]:
        if self._unfit:
            return _fault("a process makes texts up to an error that is no compiler's")
        if self._read != (header["filename"], blob):
            self._read, self._kernels = (header["filename"], blob), None
        answer, text = self._text(header, blob)
        with contextlib.suppress(Exception):  # what tl.static_print wrote
            sys.stdout.flush()
        return answer, text

    def _text(self, header: JsonObject, blob: bytes) -> tuple[JsonObject, bytes]:
        """Returns the answer and the text. Raises nothing: an exception while a text is made is the file's failure."""
        recipe = header["recipe"]
        try:
            kernels = self._kernels = self._kernels or FileKernels(header["filename"], blob)
            with dots_of_any_size() if header["small_dots"] else contextlib.nullcontext():
                return {"kind": "text", "failure": None, "fits": True}, kernels.text(recipe, self._target)
        except NotInFile:
            return self._failed(Failure(FOREIGN_KERNEL, kernel=recipe["function"])), b""
        except NotPlain as told:
            return self._failed(Failure(NOT_PLAIN, message=str(told), kernel=recipe["function"])), b""
        except CompilationError as error:
            failure = compile_failure(error, kernels.tree)
            return self._failed(failure, fits=not isinstance(error, CompileTimeAssertionFailure)), b""
        except MemoryError:
            self._unfit = True
            return self._failed(Failure("memory", "MemoryError")), b""
        except OSError as error:
            if error.errno in FULL:
                return _fault(str(error))
            return self._uncommon(error, recipe), b""
        except BaseException as error:
            return self._uncommon(error, recipe), b""

    def _uncommon(self, error: BaseException, recipe: JsonObject) -> JsonObject:
        self._unfit = True
        return self._failed(Failure("compile", type(error).__name__, text_of(error), 0, recipe["function"]))

    def _failed(self, failure: Failure, fits: bool = True) -> JsonObject:
        """Returns the answer for a failure. fits: False where Triton leaves out a configuration for not compiling."""
        return {"kind": "text", "failure": asdict(failure), "fits": fits, "unfit": self._unfit}


def _fault(message: str) -> tuple[JsonObject, bytes]:
    return {"kind": "fault", "message": message}, b""
