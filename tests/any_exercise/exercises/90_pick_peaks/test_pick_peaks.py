"""90 · Pick peaks: what a right kernel must do. No exercise of the course: it has all that an operation may have."""

from grader import (
    Example,
    Exercise,
    Result,
    any_strides,
    contiguous,
    indices,
    into,
    normal,
    one_of,
    target,
    upto,
)


def peaks_in_float64(x, state, index, scale, clamp):
    peaks = x.amax(dim=(2, 3)).flatten()[index]
    z = peaks * scale
    return z.clamp(min=0) if clamp else z, (x > 0).sum(dim=(2, 3)), state + peaks


def low(*shape):
    """Below 0, all of it: peaks that a clamp changes."""
    return normal(*shape) - 9


exercise = Exercise(
    entry="pick_peaks",
    reference=peaks_in_float64,
    returns=("z", Result("counts", dtype="int32")),
    updates=("state",),
    bound="exact",  # a maximum, a product with a power of two, a sum of two: one right rounding each
    minutes=20,
    example=Example(normal(1, 2, 3, 4), normal(5).of("float32"), indices(5, below=2), 0.5, False, BLOCK_S=2, BLOCK_K=4),
)


def test_a_few_picks(check):
    check(normal(2, 3, 20, 8), normal(100).of("float32"), indices(100, below=6), 0.5, False)


def test_negative_peaks_are_clamped(check):
    check(low(2, 3, 5, 3), normal(70).of("float32"), indices(70, below=6), 2.0, True)


def test_heads_and_positions_may_change_places_in_memory(check):
    x = normal(2, 3, 20, 8).stored_as(0, 2, 1, 3)
    check(x, normal(65).every_second().of("float32"), indices(65, below=6), 4.0, False)


def test_another_block_gives_the_same_result(check):
    x = normal(2, 2, 9, 5).padded()
    check(x, normal(33).of("float32"), indices(33, below=4), 0.5, False, BLOCK_S=4, BLOCK_K=16)


def test_all_is_read_and_written_once(traffic):
    data = normal(2, 3, 37, 16), normal(100).of("float32"), indices(100, below=6), 0.5, False
    traffic(*data, reads=1, writes=1, programs=8)


def test_it_compiles_for_a_gpu(compiled):
    compiled(normal(4, 8, 256, 64), normal(4096).of("float32"), indices(4096, below=32), 0.5, False)


def test_any_call_that_the_lesson_promises(drawn):
    drawn(
        sizes={
            "B": upto(3, block=1),
            "H": upto(4, block=1),
            "S": upto(50, BLOCK_S=16),
            "D": upto(20, block=16),
            "K": upto(200, least=0, BLOCK_K=64),
        },
        x=any_strides("B", "H", "S", "D", values=(normal, low)),
        state=target("K", values=(normal,), dtype="float32"),
        index=contiguous("K", values=(into("B", "H"),)),
        scale=one_of(0.5, 4.0),
        clamp=one_of(False, True),
    )


def test_a_size_that_only_a_gpu_gets_through(on_gpu):
    on_gpu(normal(8, 64, 512, 64), normal(1_000_003).of("float32"), indices(1_000_003, below=512), 0.5, False)


def test_it_reaches_the_gate(throughput):
    data = normal(16, 64, 1024, 64), normal(1 << 20).of("float32"), indices(1 << 20, below=1024), 0.5, False
    throughput(*data, at_least=0.5)
