"""The parent's end of a compiler process: started ahead, asked under a time limit, replaced if a text has ended it."""

from __future__ import annotations

import atexit
import signal
import subprocess
import threading
from collections.abc import Iterable

from grader.compiler.result import LAID_OUT, CompilerResult, Failed, read_answer
from grader.gpu.amd import ASSEMBLY
from grader.gpu.models import AmdModel
from grader.processes import scratch
from grader.processes.asked_process import PythonProcess
from grader.processes.call_clock import LAST_RESORT
from grader.processes.environment import trusted_path
from grader.processes.faults import MachineFault, ProcessEnded
from grader.processes.readable import readable
from grader.processes.torch_forkserver_client import clean_environment
from grader.processes.triton_forkserver_client import START_LIMIT
from grader.wire.fence import Fence
from grader.wire.fields import build
from grader.wire.frames import ProtocolError
from grader.wire.messages import GpuModel
from grader.wire.printable import one_line

COMPILE_LIMIT = 60.0  # seconds of a core for one kernel
MOST_SAID = 2000  # characters of a crashed compiler's last message


class CompilerClient:
    """Compiles texts, one at a time. Making a CompilerClient returns at once; the first request waits for its
    imports."""

    def __init__(self) -> None:
        self.started = 0  # processes, the first one included
        self._one_at_a_time = threading.Lock()
        self._ended = False
        self._process: _Process | None = self._new_process()
        atexit.register(self.end)

    def compile(
        self, source: str, options: dict, model: GpuModel, parts: Iterable[str] = (), limit: float = COMPILE_LIMIT
    ) -> CompilerResult | Failed:
        """Returns a kernel's machine code, and the texts that `parts` names: "optimised", "laid out", "ttir" ...

        source: MLIR's generic form after the inliner. options: as grader.wire.recorded_call.Recipe has them. limit: in
        seconds of a core. Raises MachineFault if no process comes up.
        """
        return self._answer(source, options, model, ("cubin", *sorted(set(parts) - {"cubin"})), "cubin", limit)

    def optimised(
        self, source: str, options: dict, model: GpuModel, limit: float = COMPILE_LIMIT
    ) -> CompilerResult | Failed:
        """Returns the text after Triton's first passes, in `optimised`: a hundredth of the work of `compile`."""
        return self._answer(source, options, model, ("optimised",), "ttir", limit)

    def laid_out(
        self, source: str, options: dict, model: GpuModel, limit: float = COMPILE_LIMIT
    ) -> CompilerResult | Failed:
        """Returns the text in which tiles have layouts, in `laid_out`: a quarter of the work of `compile`."""
        return self._answer(source, options, model, (LAID_OUT,), "ttgir", limit)

    def assembly(
        self, source: str, options: dict, model: AmdModel, limit: float = COMPILE_LIMIT
    ) -> CompilerResult | Failed:
        """Returns the text of an AMD GPU's machine code and the text with layouts, in `kernel.texts`."""
        return self._answer(source, options, model, (ASSEMBLY, "ttgir"), ASSEMBLY, limit)

    @property
    def versions(self) -> dict[str, str]:
        """The versions of the compiler: {"triton": "3.7.1"}. Raises MachineFault if no process comes up."""
        with self._one_at_a_time:
            return self._process_here().versions

    @property
    def fence(self) -> Fence:
        """The fence that holds the process in. Raises MachineFault if no process comes up."""
        with self._one_at_a_time:
            return self._process_here().fence

    @property
    def pid(self) -> int:
        with self._one_at_a_time:
            return self._process_here().pid

    def end(self) -> None:
        """Ends the process at once, even while another thread waits for an answer. May be called again."""
        atexit.unregister(self.end)
        self._ended = True
        if (process := self._process) is not None:
            process.kill()
        with self._one_at_a_time:
            if self._process is not None:
                self._process.end()
            self._process = None

    def _answer(
        self, source: str, options: dict, model: GpuModel | AmdModel, parts: tuple[str, ...], until: str, limit: float
    ) -> CompilerResult | Failed:
        arch, lanes = (model.arch, 32) if isinstance(model, GpuModel) else (model.target, model.lanes)
        request = {"kind": "compile", "arch": arch, "lanes": lanes, "options": options, "until": until, "parts": parts}
        with self._one_at_a_time:
            process = self._process_here()
            try:
                return read_answer(*process.ask(request, source.encode(), limit), model)
            except ProcessEnded as ended:
                return Failed(ended.how, f"it takes more than {limit:g} s" if ended.how == "time" else ended.detail)
            except ProtocolError as error:
                return Failed("died", f"its answer was garbled: {error}")
            finally:
                if process.has_ended:
                    self._process = None if self._ended else self._new_process()

    def _process_here(self) -> _Process:
        """Returns the process, ready to be asked. Raises MachineFault if it was ended or does not come up."""
        if self._ended:
            raise MachineFault("the compiler's process was ended")
        if self._process is None or self._process.has_ended:
            self._process = self._new_process()
        try:
            self._process.wait_until_ready()
        except ProcessEnded as ended:
            self._process.end()
            self._process = None
            raise MachineFault(f"the compiler's process did not come up: {ended.detail or ended.how}") from None
        return self._process

    def _new_process(self) -> _Process:
        self.started += 1
        return _Process()


class _Process(PythonProcess):
    fence: Fence  # set once it is ready

    def __init__(self) -> None:
        self.versions: dict[str, str] = {}  # empty until it is ready
        self._folder = scratch.new_folder()
        super().__init__(
            "grader.compiler.compiler_process", readable(trusted_path()), folder=self._folder,
            environment=clean_environment(str(self._folder)), stderr=(self._folder / "said").open("wb"),
        )  # fmt: skip

    def wait_until_ready(self) -> None:
        """Waits for the process's imports, and reads its fence and versions. Raises ProcessEnded if it does not come
        up."""
        if not self.versions:
            try:
                header, _ = self._exchanged(START_LIMIT)
                self.fence = build(Fence, header.get("fence"))
                self.versions = {str(name): str(value) for name, value in header["versions"].items()}
            except ProtocolError as error:
                raise ProcessEnded("died", str(error)) from None

    def ask(self, header: dict, blob: bytes, limit: float) -> tuple[dict, bytes]:
        """Returns the header and the blob of the answer. Raises ProtocolError, and ProcessEnded if the process ends.

        ProcessEnded says "time" for more than `limit` seconds of a core. The process itself keeps this limit.
        """
        return self._exchanged(limit + LAST_RESORT, {**header, "seconds": limit}, blob)

    def end(self) -> None:
        super().end()
        scratch.remove(self._folder)

    def _how_it_ended(self, error: Exception) -> Exception:
        if isinstance(error, ProtocolError):
            return error
        try:
            status = self._process.wait(LAST_RESORT)
        except subprocess.TimeoutExpired:
            return ProcessEnded("died", "it closed its descriptors")
        if status == -signal.SIGXCPU:
            return ProcessEnded("time", "")
        how = f"by signal {-status}" if status < 0 else f"with status {status}"
        return ProcessEnded("died", f"it ended {how}. {self._last_words()}".strip())

    def _last_words(self) -> str:
        """Returns the failed assertion of the compiler, else the last line that it wrote; "" if there is none."""
        try:
            output = (self._folder / "said").read_bytes()[-(1 << 16) :].decode("utf-8", "replace")
        except OSError:
            return ""
        lines = [line for line in output.splitlines() if line.strip()]
        words = next((line for line in lines if "Assertion" in line or "LLVM ERROR" in line), (lines or [""])[-1])
        return one_line(words[:MOST_SAID])
