"""A recorded call as it is sent to be interpreted, and the reply that the recording alone gives."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace
from functools import cached_property

from grader.wire import recorded_parts
from grader.wire.recorded_call import RecordedCall, recorded_to_json
from grader.wire.recorded_parts import Fill, steps_with
from grader.wire.reply import Reply


@dataclass
class PackedCall:
    """A recorded call with the texts of its kernels, and as it is sent to be interpreted."""

    call: RecordedCall

    def reply(self, writable: list[str], ran: Reply | None = None) -> Reply:
        """Returns what is recorded of the call, added in place to `ran`, the interpreter's reply, if given.

        writable: names of the arguments that the entry may write.
        """
        call, reply = self.call, ran or Reply()
        reply.error = call.error or reply.error
        reply.refusals, reply.processes = call.refusals, call.processes
        reply.result = call.returned
        reply.configurations = call.usable_configs
        written = (step for step in steps_with(call.steps, 0) if isinstance(step, (Fill, recorded_parts.PythonNumbers)))
        filled = [call.buffers[step.view.buffer] for step in written]
        names = [buffer.name for buffer in filled if buffer.argument and buffer.name not in writable]
        reply.changed = list(dict.fromkeys(names))
        return reply

    @cached_property
    def _parts(self) -> list[bytes]:
        """The call as JSON, then the text of each of its kernels."""
        return [recorded_to_json(self.call), *(kernel.source.encode() for kernel in self.call.kernels)]

    @cached_property
    def blob(self) -> bytes:
        return b"".join(self._parts)

    @cached_property
    def places(self) -> tuple[list[int], list[list[int]]]:
        """The locations in the blob, [start, bytes], of the call and of each kernel's text."""
        sizes = [len(part) for part in self._parts]
        call, *texts = ([start, size] for start, size in zip(itertools.accumulate([0, *sizes]), sizes))
        return call, texts

    def with_sources(self, sources: list[str]) -> PackedCall:
        """Returns the same call, with other texts of its kernels."""
        kernels = [replace(kernel, source=source) for kernel, source in zip(self.call.kernels, sources, strict=True)]
        return PackedCall(replace(self.call, kernels=kernels))
