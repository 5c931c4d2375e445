"""Machine code as text, made by the tools that come with Triton. The machine code is not run.

Loads and stores are inline assembly, whose rows the compiler numbers on as if they were the kernel's own lines; in the
machine code a load may then seem to stem from lines below it. The PTX is therefore assembled once more without these
numbers: the same instructions then have the right lines. If they are not the same, the machine code is shown as it is.
"""

from __future__ import annotations

import contextlib
import importlib.util
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

from grader.gpu.compiled_facts import without_counted_lines
from grader.learn.code_levels import instructions

LIMIT = 30  # seconds
ASSEMBLERS = ("ptxas-blackwell", "ptxas")
NO_FILE = ""  # no line belongs to it, so that instructions alone are compared


class NotDisassembled(Exception):
    """Machine code could not be turned into text; the message is a sentence for the learner."""


def disassembled(cubin: bytes, ptx: str) -> str:
    """Returns nvdisasm's text of the machine code, with line information. Raises NotDisassembled."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "kernel.cubin"
        path.write_bytes(cubin)
        text = _read(path)
        for again in _assembled_again(without_counted_lines(ptx), Path(folder)):
            if instructions("sass", again, NO_FILE) == instructions("sass", text, NO_FILE):
                return again
    return text


def count_of_instructions(cubin: bytes) -> int:
    """Returns the number of instructions, without NOPs, which only fill up the end. Raises NotDisassembled."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "kernel.cubin"
        path.write_bytes(cubin)
        rows = [instruction.text for instruction in instructions("sass", _read(path), NO_FILE)]
    return sum(not row.startswith(".L_") and "  NOP" not in row for row in rows)


def _assembled_again(ptx: str, folder: Path) -> Iterator[str]:
    """Yields the text of the PTX, assembled anew with each assembler and option that a release of Triton may use."""
    source, target = folder / "again.ptx", folder / "again.cubin"
    source.write_text(ptx, encoding="utf-8")
    architecture = next((row.split()[1].rstrip(",") for row in ptx.splitlines() if row.startswith(".target")), "")
    for tool in ASSEMBLERS:
        for options in ([], ["--regAllocOptLevel=2"]):
            with contextlib.suppress(NotDisassembled):
                _output(tool, "-lineinfo", *options, f"--gpu-name={architecture}", str(source), "-o", str(target))
                yield _read(target)


def _read(path: Path) -> str:
    return _output("nvdisasm", "-g", "-c", str(path))


def _output(tool: str, *arguments: str) -> str:
    try:
        done = subprocess.run([_path_of(tool), *arguments], capture_output=True, text=True, timeout=LIMIT, check=True)
    except (OSError, subprocess.SubprocessError):
        raise NotDisassembled("The machine code could not be disassembled.") from None
    return done.stdout


def _path_of(tool: str) -> str:
    """Returns the path of a tool that comes with Triton, which is not imported, or of the tool of this name on PATH.

    Raises NotDisassembled if there is neither.
    """
    spec = importlib.util.find_spec("triton")
    bundled = Path(spec.origin).parent / "backends/nvidia/bin" / tool if spec and spec.origin else None
    path = str(bundled) if bundled and bundled.exists() else shutil.which(tool)
    if path is None:
        raise NotDisassembled(f"Machine code needs {tool}, which this Triton does not bring.")
    return path
