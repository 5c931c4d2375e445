"""The fixtures of an exercise's tests. Each function makes that of its name, for one test of a session.

Imports no torch: pytest reads it wherever it starts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from grader.session.session import Session


def check(session: Session, item: pytest.Function):
    """check(*data, bound=None, dtypes=(), **constants): values and memory safety of one call, in every dtype.

    data: a data set for each argument, or a number where the argument is one. bound: of all results, or of some by
    name, as in bound={"z": "exact"}, in place of the exercise's; "unjudged" of one that may hold anything.
    """

    def check(*data, bound=None, dtypes=(), **constants):
        session.settle(item, lambda judge, name: judge.check(name, data, bound, dtypes, **constants))

    return check


def raises(session: Session, item: pytest.Function):
    """raises(*data, because, error="ValueError", **constants): a call that the lesson does not promise.

    The entry has to raise this before it launches anything, in every dtype. because: what is wrong with the call, as
    in "rows of a begin at no multiples of 16 bytes".
    """

    def raises(*data, because, error="ValueError", **constants):
        from grader.judge.refused_calls import Unpromised

        session.settle(item, lambda judge, name: judge.raises(name, data, Unpromised(because, error), **constants))

    return raises


def drawn(session: Session, item: pytest.Function):
    """drawn(sizes={"N": upto(300)}, x=any_strides("N"), dtypes=(), blocks=(), same=(), refuses="", share=1.0): about
    thirty calls.

    What the lesson promises, argument by argument; the calls within it come from the run's seed. sizes: of each name
    in a shape. dtypes: those of the exercise, if none are given. blocks: constants of the module that some
    calls replace. same: arguments that one call gives the same tensor for. refuses: the error, as "ValueError", that a
    call has to raise in which rows that are to be aligned are not. share: how many of the calls are judged, other ones
    in each run, where an earlier test has drawn calls of the same kernel. An argument is any_strides, contiguous, or
    target where it is filled or updated, with values=(into("M"),) if it holds indices; or a number: one_of(0.5, 4.0),
    between(0.5, 4.0), optional(between(1, 150)) where it may be None.
    """

    def drawn(**options):
        session.wait_for_right_values(item)
        session.settle(item, lambda judge, name: judge.drawn(name, judge.promise(options)))

    return drawn


def traffic(session: Session, item: pytest.Function):
    """traffic(*data, reads=1, writes=1, launches=None, idle=None, programs=None, moved=None, lanes=None, share=None,
    scratch=None, kept=None, float_atomics=True, at_once=1, bound=None, **constants): a call's cost.

    reads: how often each input may be read, in multiples of its size; a number, or one per argument, where
    Elements(48) states how many of its elements may be read. writes: the same for the results. launches: how many
    kernels may be launched. idle: how many programs may have nothing to do. programs: how many there may be. moved: how
    many bytes a GPU may move for each byte used, since it moves whole sectors of 32 bytes. lanes: how many lanes of
    a load or store there may be for each element that it touches. share: how much of an input one program may read, in
    multiples of its size or as Elements; a number, or one per argument. scratch: how many bytes kernels may move in
    memory that only they see, for each byte of the arguments and results. kept: how many numbers they may keep there,
    all in fp32. float_atomics: whether programs may add floats by atomics, which come in any order. at_once: how many
    neighbouring programs share what they read, as in a cache. bound: as of `check`; the values have to be right too.
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
    **constants): the machine code of one call.

    It has to exist, fit the GPU and spill no registers. vectors: every access to global memory moves 16 bytes.
    tensor_cores: products of tiles run on the instruction made for them. halves: all of them multiply tiles of 16 bits.
    pipelined: loads run ahead of their use. descriptors: all large tiles are moved through descriptors, on GPUs that
    have a unit for it.
    Sizes may be as on a GPU. Values are judged too, in the first dtype: in full on a GPU, else in two programs.
    """

    def compiled(*data, vectors=False, tensor_cores=False, halves=False, pipelined=False, descriptors=False,
                 **constants):  # fmt: skip
        from grader.explain.compiled_code import Expectations

        session.wait_for_right_values(item)
        expected = Expectations(vectors, tensor_cores, halves, pipelined, descriptors)
        session.settle(item, lambda judge, name: judge.compiled(name, data, expected, **constants))

    return compiled


def tuned(session: Session, item: pytest.Function):
    """tuned(*data, others=[data, ...], configurations=(4, 24)): the choice that an autotuned kernel makes for a call.

    configurations: how few and how many there may be to choose from. others: calls of other sizes, each of which has to
    make a choice of its own: let them lie far apart, for a key may put neighbouring sizes together. Nothing runs, so
    sizes may be as on a GPU.
    """

    def tuned(*data, others=(), configurations=(2, 64)):
        session.wait_for_right_values(item)
        session.settle(item, lambda judge, name: judge.tuned(name, data, others, configurations))

    return tuned


def on_gpu(session: Session, item: pytest.Function):
    """on_gpu(*data, bound=None, dtypes=(), **constants): as `check`, for sizes that only a GPU gets through.

    Inputs are drawn on the GPU and the result is compared there. Without a GPU a sample of the programs is judged, on
    memory that is made when they touch it; what they show is a failure, and else the test is skipped.
    """

    def on_gpu(*data, bound=None, dtypes=(), **constants):
        session.wait_for_all_before(item)
        session.settle(item, lambda judge, name: judge.on_gpu(name, data, bound, dtypes, **constants))

    return on_gpu


def throughput(session: Session, item: pytest.Function):
    """throughput(*data, at_least, anchor="copy", since=""): the speed of one call, as a share of an anchor's on the
    same GPU.

    anchor: "copy", which reads and writes as many bytes as the call has to, or "matmul", the vendor's product of the
    same matrices, or of those that the exercise states as its `product`. since: the first target that it is asked of,
    as "sm_90". Without a GPU a few programs of the call are judged; what they show is a failure, and else the test is
    skipped. So it is where noise hides the speed.
    """

    def throughput(*data, at_least, anchor="copy", since=""):
        if session.replays is None and session.is_right_so_far(item):
            session.settle(item, lambda judge, name: judge.untimed(name, data))
        session.needs_gpu(item)
        session.wait_for_all_before(item)
        session.settle(item, lambda judge, name: judge.throughput(name, data, anchor, at_least, since))

    return throughput
