"""The file of --promise: a few lines of TOML about what a kernel is for, beyond the usual.

in_place = ["x"]        the kernel changes x; the reference returns what x becomes, or changes its x
out = ["z"]             the kernel fills z, which it is given; the reference returns what z becomes
any_strides = true      or names of arguments: they may be views with any strides; else all are contiguous
positive = ["x"]        values from 0 to 30; else normal values of any sign
strided_results = true  results may have any strides; else they are contiguous
nan = true              some calls hold NaN, infinities and -0.0
only_kernels = true     an operation of torch in the function that launches is a mistake; else it is not judged
approximates = 1e-4     the kernel approximates on purpose, by up to this share of the largest value
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from grader.own.cannot_judge import CannotJudge, message_of

FLAGS = ("strided_results", "nan", "only_kernels")


@dataclass(frozen=True)
class OwnPromise:
    in_place: tuple[str, ...] = ()
    out: tuple[str, ...] = ()
    any_strides: bool | tuple[str, ...] = False
    positive: tuple[str, ...] = ()
    strided_results: bool = False
    nan: bool = False
    only_kernels: bool = False
    approximates: float = 0.0

    @property
    def changed(self) -> tuple[str, ...]:
        return (*self.in_place, *self.out)

    def has_any_strides(self, name: str) -> bool:
        return self.any_strides if isinstance(self.any_strides, bool) else name in self.any_strides

    @property
    def named(self) -> tuple[str, ...]:
        """The arguments that it names."""
        strided = () if isinstance(self.any_strides, bool) else self.any_strides
        return (*self.changed, *strided, *self.positive)


def read_promise(path: Path) -> OwnPromise:
    """Returns the promise of a file. Raises CannotJudge."""
    try:
        stated = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise CannotJudge(
            f"The promise {path} cannot be read: {error.strerror}.", "name a file that is there."
        ) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise CannotJudge(
            f"The promise {path} is no TOML: {message_of(error)}.", 'write lines as in_place = ["x"]'
        ) from None
    return promise_of(stated)


def promise_of(stated: Mapping[str, Any]) -> OwnPromise:
    """Returns the promise that these values state, by name. Raises CannotJudge."""
    found = OwnPromise()
    known = [one.name for one in fields(OwnPromise)]
    for name, value in stated.items():
        if name not in known:
            raise CannotJudge(f"The promise says {name}, which the judge does not know.", f"use {', '.join(known)}.")
        found = replace(found, **{name: _checked(name, value)})
    return found


def _checked(name: str, value: Any) -> Any:
    if name == "approximates":
        if isinstance(value, float) and 0 <= value < 1:
            return value
        raise CannotJudge(f"The promise says approximates = {value!r}.", "write a share of the largest value, as 1e-4.")
    if name in (*FLAGS, "any_strides") and isinstance(value, bool):
        return value
    if name not in FLAGS and isinstance(value, list | tuple) and all(isinstance(one, str) for one in value):
        return tuple(value)
    wanted = "true or false" if name in FLAGS else 'names of arguments, as ["x"]'
    raise CannotJudge(f"The promise says {name} = {value!r}.", f"write {wanted}.")
