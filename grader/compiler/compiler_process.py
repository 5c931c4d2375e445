"""The compiler process: disposable, trusted code only. It receives a kernel as text and runs Triton's stages on it.

The text is MLIR's generic form of the front end's result, after the inliner. It comes from a learner's kernel, so it
may be anything: an endless pass of Triton's compiler, or an assertion that ends the process, harms this process alone.
The parent sets a time limit and starts another process.

    process -> parent    ready    {versions, fence}                        triton is imported
    parent -> process    compile  {arch, lanes, options, until, parts, seconds}   the blob is the text
    process -> parent    compiled {metadata, descriptors, parts}           places of texts and machine code in the blob
                         failed   {what, stage, message}

`arch`: 90, or "gfx942" for an AMD GPU. Stages: ttir, ttgir, llir, ptx, cubin; for an AMD GPU amdgcn follows llir.
Parts: the results of these stages, and two generic forms: "optimised" of the stage ttir's result, "laid out" of the
stage ttgir's.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
from dataclasses import asdict
from pathlib import Path
from typing import Any

import triton

from grader.child.enclosing import close_fence
from grader.child.limits import limit_cpu, limit_memory_and_files
from grader.child.triton_api import Language, PTXASError
from grader.front_end.triton_text_api import GPUTarget, ir, make_backend
from grader.front_end.ttir_text import generic_text
from grader.wire import frames
from grader.wire.launch_abi import TENSOR_MAP_FORMS, Metadata

SAID = Path("said")  # the compiler's stderr, in the process's folder
SOURCE = Path("source.mlir")
MOST_MEMORY = 4 << 30  # bytes of address space; a large kernel takes a tenth of it
MOST_FILE_BYTES = 256 << 20
METADATA = tuple(Metadata.__dataclass_fields__)
GENERIC = {"ttir": "optimised", "ttgir": "laid out"}  # parts that stages make, besides their own
ERROR = re.compile(r"error: (.*)")
FAILED_PASS = re.compile(r"Pipeline failed while executing \[`(\w+)`")
SAYS_NOTHING = "Failures have been detected"
OUT_OF_TIME = f"error code {-signal.SIGXCPU}"  # in Triton's message about an assembler that the time limit ended


def main(request_fd: int, reply_fd: int, readable: list[str]) -> None:
    """Answers requests until the pipe ends. `readable`: paths that the process may read besides the current folder."""
    limit_memory_and_files(MOST_MEMORY, MOST_FILE_BYTES)
    output = os.open(SAID, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
    os.dup2(output, 2)
    os.close(output)
    with open(request_fd, "rb") as requests, open(reply_fd, "wb") as replies:
        fence = asdict(close_fence(readable))
        frames.send(replies, {"kind": "ready", "versions": {"triton": triton.__version__}, "fence": fence})
        while True:
            try:
                header, blob = frames.received(requests)
            except EOFError:  # the parent is done, or gone
                shutil.rmtree(Path.cwd(), ignore_errors=True)
                os._exit(0)
            os.ftruncate(2, 0)
            limit_cpu(header["seconds"])
            answer = _Compilation(header).answer(blob)
            _clear_up()
            frames.send(replies, *answer)


class _Compilation:
    def __init__(self, request: dict) -> None:
        self.request = request
        self.stage = "options"  # the current stage
        self.parts: dict[str, bytes] = {}
        self.metadata: dict[str, Any] = {}

    def answer(self, text: bytes) -> tuple[dict, bytes]:
        try:
            self._compile(text)
        except PTXASError as error:
            what = "time" if OUT_OF_TIME in str(error) else "assembler"
            return self._failed(what, str(error)), b""
        except MemoryError:
            return self._failed("memory", "it takes more memory than a compiler should"), b""
        except Exception as error:
            what = {"options": "options", "source": "text"}.get(self.stage, "stage")
            return self._failed(what, self._diagnosis() or f"{type(error).__name__}: {error}"), b""
        places, blob = {}, b""
        for name, data in self.parts.items():
            places[name] = [len(blob), len(data)]
            blob += data
        metadata = {name: self.metadata[name] for name in METADATA if name in self.metadata}
        descriptors = [dict(about) for about in self.metadata.get(TENSOR_MAP_FORMS) or []]
        return {"kind": "compiled", "metadata": metadata, "descriptors": descriptors, "parts": places}, blob

    def _failed(self, what: str, message: str) -> dict:
        return {"kind": "failed", "what": what, "stage": self.stage, "message": message}

    def _compile(self, text: bytes) -> None:
        arch, lanes = self.request["arch"], self.request["lanes"]
        target = GPUTarget("hip" if isinstance(arch, str) else "cuda", arch, lanes)
        backend = make_backend(target)
        options = backend.parse_options(dict(self.request["options"]))
        stages: dict = {}
        backend.add_stages(stages, options, Language.TRITON)
        context = ir.context()
        ir.load_dialects(context)
        backend.load_dialects(context)
        self.metadata = {"target": target, **vars(options)}
        self.stage = "source"
        SOURCE.write_bytes(text)
        module = ir.parse_mlir_module(str(SOURCE), context)
        module.context = context  # Triton's stages ask the module for it
        if not module.get_entry_func_name():
            raise ValueError("it has no kernel")  # with an assertion the passes would end this process
        for self.stage, stage in stages.items():
            module = stage(module, self.metadata)
            self._keep(module, context)
            if self.stage == self.request["until"]:
                return

    def _keep(self, module: Any, context: Any) -> None:
        """Keeps the requested parts of this stage's result."""
        part = GENERIC.get(self.stage, "")
        if part in self.request["parts"]:
            self.parts[part] = generic_text(module, context).encode()
        if self.stage in self.request["parts"]:
            self.parts[self.stage] = module if isinstance(module, bytes) else str(module).encode()

    def _diagnosis(self) -> str:
        """Returns MLIR's first error on stderr, or the pass that failed without an error; "" if there is neither."""
        output = SAID.read_text(errors="replace")
        errors = (match[1] for match in ERROR.finditer(output) if not match[1].startswith(SAYS_NOTHING))
        failed = (f"the pass {match[1]} failed" for match in FAILED_PASS.finditer(output))
        return next(errors, next(failed, ""))


def _clear_up() -> None:
    """Removes all files of the folder but SAID: the text, and the leftovers of an assembler that failed."""
    for path in Path().iterdir():
        if path != SAID:
            with contextlib.suppress(OSError):
                path.unlink()
