"""Defines the messages of the process that tells a story, which runs learners' files: a reader checks each field."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field

from grader.wire.fields import build, checked, items
from grader.wire.frames import JsonObject, ProtocolError

MODEL = "the model"


@dataclass(frozen=True)
class Doing:
    """It begins something. `kernel`: the one that is called now, or ""; `token`: for which token, from 1 on; 0 for the
    prompt."""

    what: str
    kernel: str = ""
    token: int = 0


@dataclass(frozen=True)
class Wrong:
    """A story that is another one. `kernel`: what makes it so, MODEL, or "" where no kernel alone does. `token`: the
    first that differs, from 1 on, 0 for the prompt; `raised`: the error that it ended with instead, with its line."""

    kernel: str
    token: int
    got: str = ""
    expected: str = ""
    raised: str = ""
    line: int = 0


@dataclass(frozen=True)
class WholeStory:
    """The story: its prompt and tokens, the loss of the prompt by its kernel and by torch, and the tokens asked for."""

    prompt: str
    tokens: list[str]
    loss_kernel: str
    loss: str
    torch_loss: str
    asked: int


@dataclass(frozen=True)
class Speed:
    """Tokens per second of one way to run the model: launched one by one, and replayed from a CUDA graph; 0 where that
    was not reached, and `why` says why."""

    name: str
    one_by_one: int
    graph: int
    why: str = ""


@dataclass(frozen=True)
class Step:
    """All calls of one kernel that a token needs, in nanoseconds: in torch, and on the kernel. `speed`: tokens per
    second in a CUDA graph, with this kernel and those before it."""

    kernel: str
    torch_ns: int
    kernel_ns: int
    speed: int


@dataclass(frozen=True)
class StorySpeeds:
    """`ways`: torch, torch.compile, the kernels. `steps`: none where the kernels cannot be captured. `why`: what kept
    all speeds from being measured."""

    gpu: str
    ways: list[Speed] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
    why: str = ""


Message = Doing | Wrong | WholeStory | StorySpeeds
KINDS: dict[str, type[Doing] | type[Wrong] | type[WholeStory]] = {
    "Doing": Doing,
    "Wrong": Wrong,
    "WholeStory": WholeStory,
}


def as_header(message: Message) -> JsonObject:
    return {"kind": type(message).__name__, **asdict(message)}


def read(header: JsonObject) -> Message:
    """Returns the message that a frame holds. Raises ProtocolError."""
    kind = header["kind"]
    if kind in KINDS:
        return build(KINDS[kind], header)
    if kind != "StorySpeeds":
        raise ProtocolError(f"{kind[:20]!r} is no message of a story")
    return StorySpeeds(
        checked(header.get("gpu"), "str", "gpu"),
        items(header, "ways", lambda way: build(Speed, way)),
        items(header, "steps", lambda step: build(Step, step)),
        checked(header.get("why"), "str", "why"),
    )
