"""Machine code of the kernels of recorded calls: made of the text that is interpreted, by the compiler processes.

Compiling a kernel takes longer than interpreting a small call of it, so it begins as soon as a call is foreseen.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from concurrent.futures import Future
from functools import cache

from grader.compiler.compiler_pool import CompilerPool, processes_here
from grader.compiler.plans import NotCompiled, plan_of
from grader.compiler.result import LAID_OUT, CompilerResult, Failed
from grader.gpu.models import AmdModel
from grader.gpu.plan import Plan
from grader.wire.frames import ProtocolError
from grader.wire.messages import Failure, GpuModel, TensorSpec
from grader.wire.recorded_call import RecordedCall, RecordedKernel
from grader.wire.recorded_parts import BadPlan, PlannedView

FACTS = ("ptx", "ttgir")  # the texts that grader.gpu.compiled_facts reads
INLINE_ASSEMBLY = '"tt.elementwise_inline_asm"'
PRODUCT, SUM, SOLID = '"tt.dot"', '"tt.reduce"', re.compile(r"tensor<\d+x\d+x\d+x")  # a tile of three dimensions


@cache
def shared_pool() -> CompilerPool:
    return CompilerPool(processes_here())


class MachineCode:
    """The machine code of a submission's kernels, for one GPU. All methods that wait for it may raise MachineFault."""

    def __init__(self, model: GpuModel) -> None:
        self._model = model
        self._certain: set[Future] = set()
        self._if_right: set[Future] = set()  # requested only if all values are right
        self._wrong = False  # whether a value is wrong

    def begin(self, call: RecordedCall, texts: Iterable[str] = (), if_right: bool = False) -> None:
        """Compiles a call's kernels in the background. `texts`: to keep, besides FACTS.

        `if_right`: the machine code is needed only if all values are right.
        """
        if call.error is None and not call.refusals and not (if_right and self._wrong):
            # A configuration that Triton passes over has no text.
            kernels = [kernel for kernel in call.kernels if kernel.source and INLINE_ASSEMBLY not in kernel.source]
            futures = [self._compiled(kernel, texts) for kernel in kernels]
            (self._if_right if if_right else self._certain).update(futures)

    def values_are_wrong(self) -> None:
        """Cancels the kernels that are needed only if all values are right, and lets no more of them begin."""
        self._wrong = True
        for future in self._if_right - self._certain:
            future.cancel()

    def plan(
        self,
        call: RecordedCall,
        arguments: list[TensorSpec],
        results: dict[str, PlannedView],
        texts: Iterable[str] = (),
    ) -> Plan:
        """Returns a call's launch plan; a plan with an error if a kernel cannot be compiled. Raises BadPlan.

        results: by name, as from results_by_name. texts: the texts of each kernel to keep besides FACTS: ttir, llir.
        """
        self.begin(call, texts)
        try:
            return plan_of(call, lambda kernel: self._answer(kernel, texts), arguments, results, self._model)
        except NotCompiled as refused:
            return Plan(error=_failure(refused))
        except ProtocolError as error:
            raise BadPlan(f"a launch does not go with its kernel: {error}") from None

    def with_products(self, kernel: RecordedKernel) -> str:
        """Returns the kernel's text after Triton's first passes, if they made a sum a product of tiles; else "".

        tl.sum(a[:, :, None] * b[None, :, :], 1) becomes a tl.dot, whose operands Triton 3.6 and 3.7 round to tf32.
        """
        if SUM not in kernel.source or not SOLID.search(kernel.source) or INLINE_ASSEMBLY in kernel.source:
            return ""
        answer = self._compiled(kernel, ("optimised",)).result()
        text = answer.optimised if isinstance(answer, CompilerResult) else ""
        return text if text.count(PRODUCT) > kernel.source.count(PRODUCT) else ""

    def laid_out(self, kernel: RecordedKernel) -> str:
        """Returns the kernel's text once its tiles have layouts; "" if it is not compiled."""
        if INLINE_ASSEMBLY in kernel.source:
            return ""
        answer = shared_pool().compile(kernel.source, kernel.recipe.options, self._model, (LAID_OUT,)).result()
        return answer.laid_out if isinstance(answer, CompilerResult) else ""

    def ptx(self, kernel: RecordedKernel) -> str:
        """Returns the kernel's PTX, the text before machine code; "" if it is not compiled."""
        answer = self._compiled(kernel, ()).result()
        return answer.kernel.texts.get("ptx", "") if isinstance(answer, CompilerResult) else ""

    def assembly(self, kernel: RecordedKernel, model: AmdModel) -> CompilerResult | Failed:
        """Returns the text of the kernel's machine code for an AMD GPU."""
        if INLINE_ASSEMBLY in kernel.source:
            return Failed("text", "it holds inline assembly")
        return shared_pool().compile(kernel.source, kernel.recipe.options, model, ()).result()

    def _answer(self, kernel: RecordedKernel, texts: Iterable[str]):
        if INLINE_ASSEMBLY in kernel.source:
            raise BadPlan(f"{kernel.name} holds inline assembly, which is not judged here")
        return self._compiled(kernel, texts).result()

    def _compiled(self, kernel: RecordedKernel, texts: Iterable[str]) -> Future:
        return shared_pool().compile(kernel.source, kernel.recipe.options, self._model, {*FACTS, *texts})

    def end(self) -> None:
        for future in self._certain | self._if_right:
            future.cancel()


def _failure(refused: NotCompiled) -> Failure:
    failed = refused.failed
    kind = "resources" if failed.what == "resources" else "compile"
    return Failure(kind, message=failed.message, line=refused.line, kernel=refused.kernel)
