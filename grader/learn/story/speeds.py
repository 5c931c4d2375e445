"""How fast a story is told on a GPU: tokens per second of torch and of the kernels, and what each kernel takes of one.

At batch 1 the launches cost more than the work. An operator of torch has a host's cost of tens of microseconds, so
launched one by one the kernels show the speed of Python. A CUDA graph replays the launches of a token without the host;
torch gets one too, and both figures of both are told.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from statistics import median
from types import SimpleNamespace
from typing import Any

import torch

from grader.learn.story.messages import Doing, Speed, Step, StorySpeeds
from grader.learn.story.telling import Story, said

TOKENS = 64  # of one sample
SAMPLES = 5
REPEATS = 20  # of the calls of a step, in one graph: so many that its start weighs little
KERNELS = "the kernels"


class Decoding:
    """A model that tells on and on after the prompt: all that changes lies on the GPU, so a token can be captured."""

    def __init__(self, story: Story, kernels: SimpleNamespace) -> None:
        self.model, self.prompt = story.model(kernels), story.prompt
        self.token, self.position = self.prompt[:1].clone(), self.prompt[:1].clone()
        self.told = torch.zeros_like(self.model.slots)  # the token at each position
        self.begin()

    def begin(self) -> None:
        first = self.model.read(self.prompt)[-1].argmax()
        self.token.fill_(first)
        self.position.fill_(len(self.prompt))

    def next(self) -> None:
        """Takes the token that was chosen, and chooses the next one."""
        self.told[self.position] = self.token
        self.token.copy_(self.model.step(self.token, self.position).argmax(-1))
        self.position.add_(1)

    def rate(self, take: Callable[[], None]) -> int:
        """Returns tokens per second; `take` is `next`, or what stands for it."""

        def sample() -> float:
            self.begin()
            return seconds(several)

        def several() -> None:
            for _ in range(TOKENS):
                take()

        return round(TOKENS / median(sample() for _ in range(SAMPLES)))

    def tells(self, truth: torch.Tensor) -> bool:
        """Returns whether what was told last begins as the truth does."""
        most = min(TOKENS, len(truth))
        return torch.equal(self.told[len(self.prompt) :][:most], truth[:most])


def captured(work: Callable[[], object]) -> torch.cuda.CUDAGraph:
    """Returns a CUDA graph of what `work` launches. It is called a few times first: kernels are compiled, and tuned."""
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            work()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        work()
    return graph


def speeds_of(story: Story) -> StorySpeeds:
    """Returns the speeds of torch, of torch.compile and of the kernels, and what each kernel takes of a token."""
    on_kernels = story.with_kernels(list(story.entries), story.operators)
    ways = [
        way_of(story, "torch", story.plain),
        way_of(story, "torch.compile", story.plain, torch.compile),
        way_of(story, KERNELS, on_kernels),
    ]
    steps = steps_of(story) if not ways[-1].why else []
    return StorySpeeds(torch.cuda.get_device_name(), ways, steps)


def way_of(
    story: Story, name: str, kernels: SimpleNamespace, changed: Callable[[Any], Any] = lambda function: function
) -> Speed:
    """Returns the speed of one way to run the model, or why it has none. `changed`: what is done to a token's work."""
    story.say(Doing(f"{name}: tokens per second"))
    one_by_one = graph = 0
    try:
        decoding = Decoding(story, kernels)
        take = changed(decoding.next)
        take()  # which compiles
        one_by_one = decoding.rate(take)
        graph = decoding.rate(captured(take).replay)
    except Exception as error:  # what torch.compile and a capture raise differs by version and by host function
        torch.cuda.synchronize()
        return Speed(name, one_by_one, graph, said(error))
    return Speed(name, one_by_one, graph, "" if decoding.tells(story.truth) else "it tells another story")


def steps_of(story: Story) -> list[Step]:
    """Returns what each kernel takes of a token, and the speed of the model as one kernel after the other comes in."""
    steps: list[Step] = []
    for name, calls in calls_of_a_token(story).items():
        story.say(Doing(f"{name}: its share of a token"))
        names = [*(step.kernel for step in steps), name]
        decoding = Decoding(story, story.with_kernels(names, story.operators))
        speed = decoding.rate(captured(decoding.next).replay)
        by_torch, by_kernel = (nanoseconds(getattr(of, name), calls) for of in (story.plain, story.operators))
        steps.append(Step(name, by_torch, by_kernel, speed))
    return steps


def calls_of_a_token(story: Story) -> dict[str, list[tuple]]:
    """Returns the arguments of each call of each kernel while one token is made."""
    calls: dict[str, list[tuple]] = {}

    def noting(name: str) -> Callable:
        def called(*arguments: Any) -> Any:
            calls.setdefault(name, []).append(arguments)
            return getattr(story.plain, name)(*arguments)

        return called

    decoding = Decoding(story, story.plain)
    decoding.model.kernels = SimpleNamespace(**{name: noting(name) for name in story.entries})
    decoding.next()
    return calls


def nanoseconds(function: Callable, calls: list[tuple]) -> int:
    """Returns how long these calls take in a CUDA graph, on memory that the cache may hold."""

    def all_calls() -> None:
        for _ in range(REPEATS):
            for arguments in calls:
                function(*arguments)

    graph = captured(all_calls)
    return round(1e9 * median(seconds(graph.replay) for _ in range(SAMPLES)) / REPEATS)


def seconds(work: Callable[[], object]) -> float:
    torch.cuda.synchronize()
    began = time.perf_counter()
    work()
    torch.cuda.synchronize()
    return time.perf_counter() - began
