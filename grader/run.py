"""A run: one submission of one exercise, its secret seed, and the child that runs it. Knows no verdicts."""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field

import torch

from grader.child_process import ChildEnded, ChildProcess
from grader.exercise import Exercise, Folder, empty_regions
from grader.inputs import Data, generator_for
from grader.nursery import MachineFault
from grader.protocol import Failure, ProtocolError, RunRequest
from grader.reply import Reply, failure_of, read_reply, spec_and_bytes
from grader.submission import Submission, read_submission

LOAD_LIMIT = 15.0  # seconds for the submission's own import
LIMIT_AFTER_TIMEOUT = 3.0  # once a call ran out of time, the next ones get less, so that a run ends


@dataclass
class Trial:
    """One call to be judged: the data sets of the arguments in one dtype, and the bound of its result."""

    name: str  # of the test
    data: tuple[Data, ...]
    dtype: torch.dtype
    bound: str
    constants: dict[str, int] = field(default_factory=dict)
    config: int = 0  # of an autotuned kernel
    arguments: list[str] = field(default_factory=list)  # their names, for the label

    @property
    def data_label(self) -> str:
        """Shapes, layouts and dtype: "61 x 781 fp32"."""
        labels = [data.label for data in self.data]
        if len(set(labels)) > 1 and self.arguments:
            labels = [f"{name} {label}" for name, label in zip(self.arguments, labels)]
        return f"{', '.join(dict.fromkeys(labels))} {short_dtype(self.dtype)}"

    @property
    def label(self) -> str:
        """The data and the block sizes: "61 x 781 fp32, BLOCK_N = 256"."""
        return self.data_label + "".join(f", {name} = {value}" for name, value in self.constants.items())


def short_dtype(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.").replace("bfloat", "bf").replace("float", "fp")


class Run:
    """Owns the seed, the inputs and the child. Calls raise ChildEnded; the next call starts a new child."""

    def __init__(self, folder: Folder, submission_path: str | None = None, seed: int | None = None) -> None:
        self.folder = folder
        self.seed = secrets.randbits(63) if seed is None else seed
        self.submission: Submission = read_submission(folder.submission_file(submission_path))
        self.empty: list[str] = []
        self.regions = 0
        self._look_for_empty_regions()
        self.load_failure: Failure | None = None
        self.load_ended: ChildEnded | None = None  # the child died or hung while it imported the submission
        self.constants: dict[str, int] = {}  # the module's own block sizes
        self.printed = ""
        self.printed_bytes = 0
        self.versions: dict[str, str] = {}
        self._child: ChildProcess | None = None
        self._timed_out = False
        self._beside = _files_of(folder)

    def _look_for_empty_regions(self) -> None:
        if self.submission.tree is not None and self.folder.solution_file.exists():
            solution = self.folder.solution_file.read_text(encoding="utf-8")
            self.empty, self.regions = empty_regions(solution, self.submission.tree)

    @property
    def not_attempted(self) -> bool:
        return self.regions > 0 and len(self.empty) == self.regions

    @property
    def needs_child(self) -> bool:
        """Whether there is anything to run."""
        return self.submission.failure is None and not self.not_attempted

    def inputs(self, trial: Trial) -> list[torch.Tensor]:
        """The arguments of a trial: the same for the same seed, whatever ran before."""
        dtype = short_dtype(trial.dtype)
        return [
            data.tensor(trial.dtype, generator_for(self.seed, self.folder.id, trial.name, dtype, number))
            for number, data in enumerate(trial.data)
        ]

    def call(self, exercise: Exercise, trial: Trial, inputs: list[torch.Tensor], **options) -> Reply:
        """One call of the entry in the child. `options` are those of RunRequest."""
        specs, blob = [], b""
        for name, tensor in zip(exercise.arguments, inputs, strict=True):
            spec, data = spec_and_bytes(name, tensor, len(blob))
            specs.append(spec)
            blob += data
        writable = [exercise.returns] if exercise.fills_argument else []
        request = RunRequest(
            exercise.entry, specs, writable, exercise.returns, trial.constants, config=trial.config, **options
        )
        limit = min(exercise.time_limit, LIMIT_AFTER_TIMEOUT) if self._timed_out else exercise.time_limit
        try:
            self._load()
            return read_reply(*self._answer(request.to_json(), blob, limit))
        except ChildEnded as ended:
            self._timed_out |= ended.how == "time"
            self._forget_child()
            raise
        except ProtocolError as error:
            self._forget_child()
            raise ChildEnded("garbled", str(error)) from None

    def _load(self) -> None:
        if self.load_ended is not None:
            raise self.load_ended
        if self._child is not None and self._child.loaded:
            return
        self._child = self._child or ChildProcess()
        header = {"kind": "load", "filename": f"{self.folder.name}.py"}
        try:
            answer, _ = self._answer(header, self.submission.source, LOAD_LIMIT)
        except ChildEnded as ended:
            self.load_ended = ended
            raise
        self._child.loaded = True
        self.versions = self._child.versions
        self.load_failure = failure_of(answer.get("error"))
        constants = answer.get("constants")
        if isinstance(constants, dict):
            self.constants = {str(k): v for k, v in constants.items() if type(v) is int}

    def _answer(self, header: dict, blob: bytes, limit: float) -> tuple[dict, bytes]:
        answer, answer_blob = self._child.ask(header, blob, limit)
        if answer["kind"] == "fault":
            self._forget_child()
            last = str(answer.get("message", "")).strip().splitlines()[-1:]
            raise MachineFault(f"the process that runs a submission failed in our own code: {''.join(last)[:200]}")
        return answer, answer_blob

    @property
    def fenced(self) -> bool:
        """Whether the kernel keeps the child from writing outside of its folder."""
        return self._child is None or self._child.fenced

    def _forget_child(self) -> None:
        if self._child is not None:
            self._child.end()
            self.printed = self.printed or self._child.printed
            self.printed_bytes += self._child.printed_bytes
            self._child = None

    def files_changed_beside(self) -> list[str]:
        """Names of the exercise's files that were rewritten or deleted since the run began; deleted ones are put back.

        For children without a fence. The learner's own file is left alone: an editor may be saving it.
        """
        changed = [p for p, content in self._beside.items() if not p.exists() or p.read_bytes() != content]
        for path in changed:
            if not path.exists():
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(self._beside[path])
        return [path.name for path in changed]

    def end(self) -> None:
        self._forget_child()


def _files_of(folder: Folder) -> dict:
    """The exercise's own files and their bytes; they are few and small."""
    files = (path for path in folder.path.glob("*") if path.is_file() and path != folder.learner_file)
    return {path: path.read_bytes() for path in files}
