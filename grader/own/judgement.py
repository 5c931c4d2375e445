"""The judgement of one's own kernel: plain data, which the command prints and a program reads.

`judge` is what `from grader import judge` gives. It works in a process of its own, so that nothing that the reference
or the judge does there can end the caller's, and the caller imports no torch.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

SCHEMA = 1  # of the fields below; it grows when one of them changes its meaning or goes
RIGHT, WRONG, NOT_JUDGED = "right", "wrong", "not judged"
JUDGE, EXPLAIN, TRACE = TOOLS = "judge", "explain", "trace"  # of course serve
EXIT = {RIGHT: 0, WRONG: 1, NOT_JUDGED: 2}


@dataclass(frozen=True)
class Judgement:
    """What was found of a kernel. Its fields are those of --json; docs/own_kernels.md explains them.

    `outcome`: RIGHT, WRONG or NOT_JUDGED. `sentences`: the mistake first; of a kernel that is not judged, why. `said`:
    the same as ids with their evidence. `next`: the next action. `cause`: an id of grader/explain/causes.py, "" without
    a failure. `line`: of the kernel's file, 0 where none is told. `call`: the failing call, by argument; `in_torch`: as
    lines of torch. `edits`: what would make the wrong calls right, where one line does. `notes`: what else is worth
    knowing. `drawn`: what was judged. `speed`: of a right kernel on a GPU, where it was asked for.
    """

    outcome: str
    sentences: list[str]
    next: str
    schema: int = SCHEMA
    file: str = ""
    entry: str = ""
    reference: str = ""
    cause: str = ""
    line: int = 0
    said: list[dict] = field(default_factory=list)
    case: str = ""
    call: list[dict] = field(default_factory=list)
    in_torch: list[str] = field(default_factory=list)
    edits: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    drawn: dict = field(default_factory=dict)
    speed: dict = field(default_factory=dict)
    target: str = ""
    seed: int = 0
    seconds: float = 0.0

    @property
    def exit_status(self) -> int:
        return EXIT[self.outcome]

    def to_json(self) -> dict:
        return asdict(self)


def judge(
    file: str | Path, reference: str | Path = "", *, entry: str = "", shapes: str = "", dtypes: Sequence[str] = (),
    promise: str | Path | Mapping[str, Any] | None = None, target: str = "", seed: int | None = None,
    thorough: bool = False, isolation: str = "limits", time: str = "",
) -> Judgement:  # fmt: skip
    """Returns the judgement of the kernel in `file` against the function of torch in `reference`. Never raises for what
    stands in these files.

    file: may be a folder, which holds ref.py and the kernel's file. entry: the function to call, where the file has
    several. shapes: as --shapes, "M,N; M=1..300 N=1..2000". dtypes: of the run, as ("fp32", "fp16"). promise: a file,
    or its values by name. target: as "sm_90". seed: of an earlier run. thorough: draw ten times as many calls.
    isolation: of the kernel's Python, "limits", "auto" or "strict". time: sizes of the call to time on a GPU, as
    "M=4096 N=4096".
    """
    request = request_of(
        file, reference, entry=entry, shapes=shapes, dtypes=dtypes, promise=promise, target=target, seed=seed,
        thorough=thorough, isolation=isolation, time=time,
    )  # fmt: skip
    from grader.own.warm_judge import WarmOwnJudge  # which knows this file

    one = WarmOwnJudge()
    try:
        return one.ask(request)
    finally:
        one.end()


def request_of(
    file: str | Path, reference: str | Path = "", *, promise: str | Path | Mapping[str, Any] | None = None,
    dtypes: Sequence[str] = (), **others: Any,
) -> dict[str, Any]:  # fmt: skip
    """Returns the request of a judgement in plain data, with paths that hold in any folder. `others`: as of `judge`;
    for `course serve` also `tool`, one of TOOLS, and `program`, which to trace."""
    stated = {**promise} if isinstance(promise, Mapping) else None if promise is None else str(Path(promise).absolute())
    usual = {
        "entry": "",
        "shapes": "",
        "target": "",
        "seed": None,
        "thorough": False,
        "isolation": "limits",
        "time": "",
    }
    files = {"file": str(Path(file).absolute()), "reference": str(Path(reference).absolute()) if reference else ""}
    return {**files, "dtypes": list(dtypes), "promise": stated, **usual, **others}
