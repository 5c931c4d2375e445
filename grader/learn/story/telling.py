"""The process that tells a story: it imports the learner's files and runs the model on their kernels.

Nothing of it is a verdict, so it is not fenced: a file runs here as `python file.py` would run it, but in a process of
its own, which may crash or hang. It says before each call of a kernel which one that is, so that its parent knows.
Without a GPU kernels run in Triton's own interpreter (TRITON_INTERPRET=1, which the parent sets): so the same model and
the same operators run on both, and the learner can repeat by hand whatever the course does.
"""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch

from grader.learn.story.entries import entry_of
from grader.learn.story.messages import MODEL, Doing, Message, StorySpeeds, WholeStory, Wrong, as_header
from grader.wire.frames import send

SEED = {"cpu": 15, "cuda": 0}  # weights whose first choices are clear
CLEAR = 3  # a choice is clear where the runner-up is this many times as far behind as fp16 moves any logit

LOSS_DIFFERS = 0.002  # both are computed in fp32 from the same logits


class KernelRaised(Exception):
    """A kernel's function has ended with an error: the exercise's file is to blame, and nothing of the model."""

    def __init__(self, kernel: str, token: int, error: Exception, line: int) -> None:
        super().__init__(kernel)
        self.wrong = Wrong(kernel, token, raised=said(error), line=line)


def said(error: BaseException) -> str:
    """Returns an error as its name and a line of what it says; of an error in the interpreter, its cause. Triton's
    compiler shows the text first, and says what is wrong with it last."""
    error = error.__cause__ or error
    lines = str(error).strip().splitlines() or [""]
    line = lines[-1 if type(error).__module__.startswith("triton.compiler") else 0]
    return f"{type(error).__name__}: {line}".rstrip(": .")[:300]


class Story:
    """Tells a story with one model on one device.

    llama: the story's module of this name. entries: the functions of the kernels.
    """

    def __init__(self, folder: Path, files: dict[str, list[str]], device: str, say: Callable[[Message], None]) -> None:
        self.device, self.say = device, say
        self.files = {name: Path(path) for name, (path, _) in files.items()}
        sys.path.insert(0, str(folder))
        self.llama = import_module("llama")
        self.entries = {name: self._entry(name, Path(path), entry) for name, (path, entry) in files.items()}
        self.operators = import_module("operators").operators(self.entries)
        self.plain = self.llama.PLAIN
        self.size = self.llama.SMALL if device == "cpu" else self.llama.LARGE
        drawn = self.llama.weights(self.size, SEED[device])
        self.weights = {dtype: self.llama.moved(drawn, device, dtype) for dtype in (torch.float16, torch.float32)}
        self.prompt = torch.tensor([self.llama.WORDS.index(word) for word in self.llama.PROMPT], device=device)
        self.token = 0  # the one that is being made, from 1 on

    def _entry(self, name: str, path: Path, entry: str) -> Callable:
        self.say(Doing("importing", name))
        try:
            return entry_of(path, entry)
        except Exception as error:
            raise KernelRaised(name, 0, error, line_in(path, error)) from None

    def model(self, kernels: SimpleNamespace, dtype: torch.dtype = torch.float16):
        return self.llama.Llama(self.size, self.weights[dtype], kernels)

    def with_kernels(self, names: list[str], kernels: SimpleNamespace) -> SimpleNamespace:
        """Returns torch's plain functions, but `kernels` for these names."""
        return SimpleNamespace(**{**vars(self.plain), **{name: getattr(kernels, name) for name in names}})

    @property
    def watched(self) -> SimpleNamespace:
        """The operators; each says that it is called, and its error is the kernel's."""
        return SimpleNamespace(**{name: self._watched(name) for name in self.entries})

    def _watched(self, name: str) -> Callable:
        operator = getattr(self.operators, name)

        def called(*arguments: Any) -> Any:
            self.say(Doing("", name, self.token))
            try:
                result = operator(*arguments)
                if self.device == "cuda":
                    torch.cuda.synchronize()  # what goes wrong on the GPU is this kernel's
            except Exception as error:
                raise KernelRaised(name, self.token, error, line_in(self.files[name], error)) from None
            return result

        return called

    def logits(self, model, tokens: torch.Tensor):
        """Yields the logits from which each of the tokens is chosen, [words] fp32, if they are told one by one."""
        self.token = 0
        logits = model.read(self.prompt)
        for number in range(len(tokens)):
            yield logits[-1].float()
            if number + 1 == len(tokens):
                return
            self.token = number + 2  # the next one is made
            position = torch.tensor([len(self.prompt) + number], device=self.device)
            logits = model.step(tokens[number : number + 1].clone(), position)  # 12 is promised no odd address

    def clear_truth(self, count: int) -> torch.Tensor:
        """Returns torch's tokens in fp32 with the greedy choice, [count]; fewer, where one is not clear in fp16.

        With 89 words two logits are nearer to each other now and then than fp16 can tell, for torch as for any kernel.
        """
        tokens = torch.zeros(count, dtype=torch.long, device=self.device)
        exact = []
        for number, logits in enumerate(self.logits(self.model(self.plain, torch.float32), tokens)):
            exact.append(logits)
            tokens[number] = logits.argmax()
        in_fp32 = torch.stack(exact)
        in_fp16 = torch.stack(list(self.logits(self.model(self.plain), tokens)))
        best = in_fp32.topk(2).values
        unclear = best[:, 0] - best[:, 1] < CLEAR * (in_fp32 - in_fp16).abs().max()
        return tokens[: int(unclear.int().argmax()) if unclear.any() else count]

    def wrong_with(self, names: list[str]) -> Wrong | None:
        """Tells the story on these kernels, and returns what is wrong with it; None where it is torch's."""
        kernel = names[0] if len(names) == 1 else ""
        try:
            for number, logits in enumerate(
                self.logits(self.model(self.with_kernels(names, self.watched)), self.truth)
            ):
                got, expected = int(logits.argmax()), int(self.truth[number])
                if got != expected or not logits.isfinite().all():
                    words = self.llama.WORDS
                    told = repr(words[got]) if logits.isfinite().all() else "none, as a logit is not finite"
                    return Wrong(kernel, number + 1, told, repr(words[expected]))
        except KernelRaised as error:
            return error.wrong
        except Exception as error:  # in the model, from what a kernel has returned
            return Wrong(kernel, self.token, raised=said(error))
        return None

    def losses(self) -> tuple[float, float]:
        """Returns the mean loss of the prompt by the kernel, and by torch from the same logits."""
        self.token = 0
        logits, targets = self.model(self.plain).read(self.prompt)[:-1], self.prompt[1:].clone()
        by_kernel, by_torch = (getattr(of, self.llama.LOSS)(logits, targets) for of in (self.watched, self.plain))
        return by_kernel.mean().item(), by_torch.mean().item()

    def tell(self, count: int) -> WholeStory | Wrong:
        """Returns the story; or what is wrong with it, by the first kernel that makes it so alone."""
        self.say(Doing("torch tells the story in fp32"))
        self.truth = self.clear_truth(count)
        names = [name for name in self.entries if name != self.llama.LOSS]
        wrong = self.wrong_with(names)
        if wrong is not None:
            alone = (self.wrong_with([name]) for name in names)
            return wrong if wrong.kernel else next(filter(None, alone), wrong)
        by_kernel, by_torch = self.losses()
        figures = f"{by_kernel:.3f}", f"{by_torch:.3f}"
        if not abs(by_kernel - by_torch) < LOSS_DIFFERS:
            return Wrong(self.llama.LOSS, 0, *figures)
        tokens = [self.llama.WORDS[token] for token in self.truth]
        return WholeStory(" ".join(self.llama.PROMPT), tokens, self.llama.LOSS, *figures, count)


def line_in(path: Path, error: BaseException | None) -> int:
    """Returns the last line of the file that an error, or its cause, went through; 0 where it went through none."""
    line = 0
    while error is not None:
        frames = traceback.extract_tb(error.__traceback__)
        line = next((frame.lineno or 0 for frame in reversed(frames) if frame.filename == str(path)), line)
        error = error.__cause__
    return line


def main(requests: int, replies: int, folder: str, files: dict[str, list[str]], gpu: str, count: int) -> None:
    """Tells a story. `files`: of each kernel, its file and the function there; `gpu`: its uuid, or "" for none."""
    os.set_blocking(replies, True)
    sys.dont_write_bytecode = True  # the learner's folder gets no files
    with open(replies, "wb") as out, torch.no_grad():

        def say(message: Message) -> None:
            send(out, as_header(message))

        try:
            story = Story(Path(folder), files, "cuda" if gpu else "cpu", say)
            outcome = story.tell(count)
        except KernelRaised as error:
            outcome = error.wrong
        except Exception as error:  # a model that the learner has changed, or a GPU without room for it
            outcome = Wrong(MODEL, 0, raised=said(error), line=line_in(Path(folder, "llama.py"), error))
        say(outcome)
        if isinstance(outcome, WholeStory) and gpu:
            from grader.gpu.lock import gpu_held
            from grader.learn.story.speeds import speeds_of

            try:
                with gpu_held(gpu, alone=True):
                    say(speeds_of(story))
            except Exception as error:
                say(StorySpeeds(torch.cuda.get_device_name(), why=said(error)))
    os._exit(0)  # a GPU that a kernel has stopped keeps Python from ending
