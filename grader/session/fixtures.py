"""The fixtures of an exercise's tests. Each function makes the fixture of its name, for one test of a session.

This module imports no torch: pytest loads it at every start, also of other projects.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from grader.session.session import Session


def check(session: Session, item: pytest.Function):
    """check(*data, bound=None, dtypes=(), **constants): judges the values and memory safety of a call.

    data: for each argument a data set, or a number where the argument is a number. bound: a bound for all results, or
    bounds for some by name, as in bound={"z": "exact"}; without it the exercise's bounds hold. "unjudged": the result
    may hold anything. dtypes: the dtypes of the call; without them, every dtype of the exercise. constants: values for
    constants of the file, as in BLOCK_N=256.
    """

    def check(*data, bound=None, dtypes=(), **constants):
        session.settle(item, lambda judge, name: judge.check(name, data, bound, dtypes, **constants))

    return check


def raises(session: Session, item: pytest.Function):
    """raises(*data, because, error="ValueError", **constants): judges a call that the lesson does not promise.

    The entry has to raise `error` before it launches anything, in every dtype. because: the reason, as a part of the
    message, as in "rows of a begin at no multiples of 16 bytes". data, constants: as in `check`.
    """

    def raises(*data, because, error="ValueError", **constants):
        from grader.judge.refused_calls import Unpromised

        session.settle(item, lambda judge, name: judge.raises(name, data, Unpromised(because, error), **constants))

    return raises


def drawn(session: Session, item: pytest.Function):
    """drawn(sizes={"N": upto(300)}, x=any_strides("N"), dtypes=(), blocks=(), same=(), refuses="", share=1.0): judges
    about thirty calls.

    The keywords state the lesson's promise, argument by argument; the run's seed draws calls within it. sizes: the
    range of each name in a shape. dtypes: without them, every dtype of the exercise. blocks: values for constants of
    the file, as in ({"BLOCK_N": 256},), which some calls take. same: arguments for which a call passes the same tensor.
    refuses: the error, as "ValueError", that a call has to raise if rows that must be aligned are not. share: the share
    of the calls to judge, other calls in each run, where an earlier test has drawn calls of the same kernel. An
    argument is any_strides, contiguous, or target where it is filled or updated, with values=(into("M"),) if it holds
    indices; or a number: one_of(0.5, 4.0), between(0.5, 4.0), optional(between(1, 150)) where it may be None.
    """

    def drawn(**options):
        session.wait_for_right_values(item)
        session.settle(item, lambda judge, name: judge.drawn(name, judge.promise(options)))

    return drawn


def traffic(session: Session, item: pytest.Function):
    """traffic(*data, reads=1, writes=1, launches=None, idle=None, programs=None, moved=None, lanes=None, share=None,
    scratch=None, kept=None, float_atomics=True, at_once=1, bound=None, **constants): judges a call's cost.

    The values have to be right too. reads: how often each input may be read, in multiples of its size; a number, or
    a dict with a number for each argument, where Elements(48) stands for a number of elements. writes: the same for the
    results. launches: how many kernels may be launched. idle: how many programs may have nothing to do. programs: how
    many programs there may be. moved: how many bytes a GPU may move for each byte used, since it moves whole sectors of
    32 bytes. lanes: how many lanes of a load or store there may be for each element that it touches. share: how much of
    an input a single program may read, stated as `reads` is. scratch: how many bytes kernels may move in memory that
    only they see, for each byte of the arguments and results. kept: how many numbers they may keep there, all in fp32.
    float_atomics: False if programs may not add floats by atomics, which come in any order. at_once: how many
    neighbouring programs share what they read, as in a cache. data, bound, constants: as in `check`.
    """

    def traffic(*data, reads=1, writes=1, launches=None, idle=None, programs=None, moved=None, lanes=None, share=None,
                scratch=None, kept=None, float_atomics=True, at_once=1, bound=None, **constants):  # fmt: skip
        others = dict(launches=launches, idle=idle, programs=programs, moved=moved, lanes=lanes, share=share,
                      scratch=scratch, kept=kept, float_atomics=float_atomics)  # fmt: skip
        session.wait_for_right_values(item)
        session.settle(
            item,
            lambda judge, name: judge.traffic(
                name, data, judge.limits(data, reads=reads, writes=writes, **others), at_once, bound, **constants
            ),
        )

    return traffic


def compiled(session: Session, item: pytest.Function):
    """compiled(*data, vectors=False, tensor_cores=False, halves=False, pipelined=False, descriptors=False,
    **constants): judges the machine code of a call.

    It has to exist, fit the GPU and spill no registers. vectors: every access to global memory has to move 16 bytes.
    tensor_cores: products of tiles have to run on the tensor cores. halves: all products have to multiply tiles of
    16 bits. pipelined: loads have to run ahead of their use. descriptors: all large tiles have to be moved through
    descriptors, on GPUs that have a unit for it. Sizes may be as large as on a GPU. Values are judged too, in the first
    dtype of the exercise: all of them on a GPU, else two programs. data, constants: as in `check`.
    """

    def compiled(*data, vectors=False, tensor_cores=False, halves=False, pipelined=False, descriptors=False,
                 **constants):  # fmt: skip
        from grader.explain.compiled_code import Expectations

        session.wait_for_right_values(item)
        expected = Expectations(vectors, tensor_cores, halves, pipelined, descriptors)
        session.settle(item, lambda judge, name: judge.compiled(name, data, expected, **constants))

    return compiled


def tuned(session: Session, item: pytest.Function):
    """tuned(*data, others=(), configurations=(2, 64)): judges the choice that an autotuned kernel makes for a call.

    configurations: the least and the largest number of configurations to choose from. others: the data of calls of
    other sizes, each of which has to make a choice of its own: let the sizes lie far apart, for a key may put
    neighbouring sizes together. Nothing runs, so sizes may be as large as on a GPU.
    """

    def tuned(*data, others=(), configurations=(2, 64)):
        session.wait_for_right_values(item)
        session.settle(item, lambda judge, name: judge.tuned(name, data, others, configurations))

    return tuned


def on_gpu(session: Session, item: pytest.Function):
    """on_gpu(*data, bound=None, dtypes=(), **constants): judges as `check`, for sizes that only a GPU gets through.

    Inputs are drawn on the GPU and the result is compared there. Without a GPU a sample of the programs is judged, on
    memory that is made when they touch it; the test fails if they are wrong, and is skipped if they are right.
    """

    def on_gpu(*data, bound=None, dtypes=(), **constants):
        session.wait_for_all_before(item)
        session.settle(item, lambda judge, name: judge.on_gpu(name, data, bound, dtypes, **constants))

    return on_gpu


def throughput(session: Session, item: pytest.Function):
    """throughput(*data, at_least, anchor="copy", since=""): judges the speed of a call, in the first dtype of the
    exercise.

    at_least: the gate, as a share of the anchor's speed on the same GPU. anchor: "copy", which reads and writes as many
    bytes as the call has to, or "matmul", the vendor's product of the same matrices, or of the matrices that the
    exercise states as its `product`. since: the first target whose speed is judged, as "sm_90". Without a GPU a few
    programs of the call are judged; the test fails if they are wrong, and is skipped if they are right. It is skipped
    too where noise hides the speed.
    """

    def throughput(*data, at_least, anchor="copy", since=""):
        if session.replays is None and session.is_right_so_far(item):
            session.settle(item, lambda judge, name: judge.untimed(name, data))
        session.needs_gpu(item)
        session.wait_for_all_before(item)
        session.settle(item, lambda judge, name: judge.throughput(name, data, anchor, at_least, since))

    return throughput
