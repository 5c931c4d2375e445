"""Explains a result that is wrong although every access was right, by the mistake that gives such numbers."""

from __future__ import annotations

import math

import torch

from grader.course.exercise import in_words
from grader.course.trial import short_dtype
from grader.explain.causes import Cause
from grader.explain.evidence import Compared, the_only
from grader.explain.hypothesis import Hypothesis
from grader.explain.mistakes.match import matching_hypotheses
from grader.explain.unwritten import tail_start, unwritten
from grader.explain.verdict import ORDINARY, SPECIAL, Verdict, failed
from grader.explain.written_tiles import as_matrix, program_index, tile_map, tiles_of
from grader.numerics.arguments import exact
from grader.numerics.bounds import size_of_terms
from grader.numerics.poison import is_poison
from grader.numerics.roundoff import EXACT, UNIT_ROUNDOFF
from grader.sentences import Fields, Said, Sentence
from grader.submission.text import narrow_sums
from grader.wire.reply import Writers

ALIKE = 1e-6  # of the largest value: two exact runs differ by less
FEW = 3  # of as many wrong tiles one has to hold what another should: tiles of the last rows and columns never do
TELLING = 4  # different values: a tile with fewer, such as a 1 among zeros, may equal another tile by chance


class Values(Sentence):
    """Sentences about what all wrong elements have in common, and about the first of them."""

    FIRST_WRONG = "First wrong element: {element} is {yours:.6g}, expected {expected:.6g}."
    FIRST_WRONG_CLOSE = "First wrong element: {element} is {yours:.9g}, expected {expected:.9g}."
    FIRST_WRONG_WHOLE = "First wrong element: {element} is {yours}, expected {expected}."
    FIRST_OF_PROGRAM = "First wrong element: {element} of program {program} is {yours:.6g}, expected {expected:.6g}."
    FIRST_OF_PROGRAM_CLOSE = (
        "First wrong element: {element} of program {program} is {yours:.9g}, expected {expected:.9g}."
    )
    FIRST_OF_PROGRAM_WHOLE = "First wrong element: {element} of program {program} is {yours}, expected {expected}."

    NOT_UPDATED = "{name} still holds what it held before: it has to be updated in place."
    NOT_FILLED = "{name} still holds what it held before: nothing of the input reached it."
    NAN = "{name} is NaN everywhere."
    CONSTANT = "{name} is {number:.6g} everywhere."
    CONSTANT_WHOLE = "{name} is {number} everywhere."
    CONSTANT_OR_NAN = "{name} is {number:.6g} wherever it is not NaN."
    LANES_EQUAL = (
        "All {count} elements that program {program} writes are equal: its lanes should differ. Do the pointers of its "
        "loads?"
    )

    ROWS_EQUAL = (
        "All rows of {name} that a program writes are equal, and they should differ: what is stored does not depend on "
        "the row. Is an address to blame, a column as x[:, None], or the axis of a reduction?"
    )
    COLUMNS_EQUAL = (
        "All columns of {name} that a program writes are equal, and they should differ: what is stored does not depend "
        "on the column. Is an address to blame, a row as x[None, :], or the axis of a reduction?"
    )

    NOT_TURNED = (
        "{tile} holds the right elements in the wrong order, that of the tile that was loaded. A reshape "
        "keeps the order; tl.trans turns a tile."
    )
    MISPLACED_TILE = "Tiles of {name} are in the wrong place: {tile} holds what belongs into {rightful}."
    SPECIAL_VALUES = "{name} is wrong only where inf, NaN or 0 is expected: special values are changed on the way."
    STRIDE_IGNORED = (
        "Right for contiguous tensors, wrong for this layout of {names}: a stride is not used as it should be."
    )
    ONE_ADDRESS = (
        "Right for tensors of their own, wrong where {part} begins at the address of {whole}: an address tells neither "
        "strides nor shape."
    )
    ONE_MEMORY = (
        "Right for tensors of their own, wrong where {part} lies within the memory of {whole}: an address tells "
        "neither strides nor shape."
    )

    ROUNDED_TO_FP16 = "Digits are lost on the way: errors are about the rounding of fp16."
    LIKE_FP16 = (
        "Digits are lost on the way: errors are {error:.3g} times what fp32 arithmetic explains, about the rounding of "
        "fp16."
    )
    OUT_OF_RANGE = (
        "Numbers on the way get too large or too small for their dtype: with 64 bits for every float {name} is right."
    )
    RANGE_OF_FP16 = (
        "Line {line} works in fp16, or rounds to it on the way: nothing above 65504 is a number of fp16, and nothing "
        "below 3e-8."
    )
    STORED_IN_16_BITS = "Line {line} rounds to 16 bits, and {name} is fp32."
    IN_TF32 = (
        "The tl.dot in line {line} cuts fp32 to tf32, 11 significant bits, unless its input_precision chooses another "
        'way: "tf32x3" and "ieee" keep the digits.'
    )
    STAY_IN_FP32 = (
        "Line {line} works in {dtype}, or rounds to it on the way: what has to keep its digits stays in fp32."
    )
    ZEROS_OF_16_BITS = (
        "Line {line} makes {name} of {dtype}, so that line {added} adds up in {dtype}: a sum keeps its digits in fp32, "
        "and the store rounds it."
    )
    CONVERT_TO_FP32 = "Convert to fp32 before computing, and keep sums in fp32."
    FEW_DIGITS = "Digits are lost on the way: errors are up to {error:.3g} times the bound."
    NO_DIGITS_TO_LOSE = "Digits are lost on the way, and here each result is due with all of its digits."
    WHERE_DIGITS_GO = "Where do large numbers meet whose difference is small, or are many added up in one variable?"

    FLUSHED = (
        "{name} is 0 wherever its size should be {limit:.2g} or less. Small numbers have digits of their own: nothing "
        "may turn them to 0."
    )

    TOO_LARGE_BY = "Where it is wrong it is too large by {difference:.6g}, in each element alike."
    TIMES = "Where it is wrong it is {factor:.6g} times what is expected, in each element alike."

    EVERY_ELEMENT = "{others}{name} is wrong in every element, {dtype}."
    SOME_ELEMENTS = "{others}{name} is wrong in {count:#element} of {total}, {dtype}."
    FROM_AN_ELEMENT_ON = "{others}{name} is wrong in {count:#element} of {total}, all from element {start} on, {dtype}."
    FROM_A_COLUMN_ON = "{others}{name} is wrong in {count:#element} of {total}, all in columns {start} and up, {dtype}."
    FROM_A_ROW_ON = "{others}{name} is wrong in {count:#element} of {total}, all in rows {start} and up, {dtype}."


def value_verdict(evidence: Compared) -> Verdict:
    """Returns the verdict on a wrong result: its most likely mistake, or else the number of wrong elements."""
    missing = unwritten(evidence)
    if missing is not None and not evidence.wanted.is_updated:
        verdict = missing
    else:  # a result that is updated in place is unwritten but for what was to change: its values tell more
        fitting, refuted = matching_hypotheses(evidence)
        first = next(iter(fitting.values()), None)
        verdict = _known_mistake(evidence, first) if first is not None else missing or _as_it_shows(evidence)
        verdict.fitting = {candidate: one.sentence for candidate, one in fitting.items()}
        # Where the formula is wrong no digits are to blame, in this call or in another one of the kernel.
        verdict.refuted = frozenset(refuted | ({Cause.LOW_PRECISION} if evidence.formula_is_right is False else set()))
    if verdict.id != Cause.UNWRITTEN:
        verdict.said.append(first_wrong(evidence))
    verdict.tiles = tile_map(evidence)
    comparison = evidence.comparison
    special = ~_is_ordinary(evidence) & ~(comparison.expected.isfinite() & comparison.out.isfinite())
    verdict.wrong = ORDINARY if bool((comparison.wrong & ~special).any()) else SPECIAL
    return verdict


def _of_the_result(evidence: Compared) -> str:
    """Returns the cause of values that nothing else explains.

    An exercise may name a cause for a result that is wrong while the other results are right.
    """
    alone = len(evidence.right_results) == len(evidence.exercise.returned) - 1
    return evidence.advice().alone.get(evidence.returns, Cause.WRONG_VALUES) if alone else Cause.WRONG_VALUES


def first_wrong(evidence: Compared) -> Said:
    """Returns "First wrong element: z[0, 0] of program (0,) is 0.00409, expected 0.004855."."""
    comparison, index = evidence.comparison, evidence.comparison.first_wrong
    where: Fields = {"element": f"{evidence.returns}{list(index) or ''}"}
    by_nobody, writers = True, evidence.writers
    if writers is not None and (writer := int(writers.programs[index])) >= 0:
        where["program"], by_nobody = _program_at(evidence, writers, writer), False
    yours, expected = comparison.out[index].item(), comparison.expected[index].item()
    if not comparison.out.is_floating_point():
        sentence = Values.FIRST_WRONG_WHOLE if by_nobody else Values.FIRST_OF_PROGRAM_WHOLE
        return sentence(yours=yours, expected=expected, **where)
    if evidence.wanted.bound != "bits":
        yours, expected = yours + 0.0, expected + 0.0  # -0 is 0
    sentence = Values.FIRST_WRONG if by_nobody else Values.FIRST_OF_PROGRAM
    if f"{yours:.6g}" == f"{expected:.6g}":
        sentence = Values.FIRST_WRONG_CLOSE if by_nobody else Values.FIRST_OF_PROGRAM_CLOSE
    return sentence(yours=yours, expected=expected, **where)


def _program_at(evidence: Compared, writers: Writers, number: int) -> tuple[int, ...]:
    """Returns the index of the program with this number, with as many axes as the launch gave its grid."""
    axes = len(evidence.launch.grid) if evidence.launch else 1
    return program_index(number, writers.grid, axes)


def _as_it_shows(evidence: Compared) -> Verdict:
    """Returns the verdict on values of which no known mistake is the cause."""
    if evidence.formula_is_right:
        lost = _flushed(evidence) or _out_of_range(evidence) or _low_precision(evidence)
        if lost is not None:
            return lost
    return (
        _constant(evidence)
        or _equal_lines(evidence)
        or _misplaced(evidence)
        or _special_values(evidence)
        or _layout(evidence)
        or _flushed(evidence)
        or _low_precision(evidence)
        or _nothing_ordinary(evidence)
        or failed(_of_the_result(evidence), _where_wrong(evidence), _alike_everywhere(evidence))
    )


def _known_mistake(evidence: Compared, found: Hypothesis) -> Verdict:
    line = found.line_of() or _line_of_mistake(found, evidence)
    verdict = failed(found.id, found.sentence, evidence.source_line(line), kind="cause", line=line)
    verdict.candidate = found.candidate
    return verdict


def _line_of_mistake(found: Hypothesis, evidence: Compared) -> int:
    """Returns the line of a known mistake, or 0 if the text does not tell it."""
    kernels = evidence.kernels
    if found.id == "rounded-operands":
        return the_only(line for kernel in kernels for line in kernel.tf32_lines + kernel.rounded_operands)
    return _where_digits_go(evidence)[1] if found.loses == "digits" else 0


def _equal_lines(evidence: Compared) -> Verdict | None:
    """Returns the verdict if all rows, or all columns, of each tile are equal and should differ; else None."""
    comparison, writers = evidence.comparison, evidence.writers
    tiles = tiles_of(writers) if writers is not None else None
    if tiles is None or comparison.wrong.dim() != 2 or tiles.shape[0] * tiles.shape[1] > 256:
        return None
    parts = [part for part in tiles.parts if min(side.stop - side.start for side in part) > 1]
    for dim, sentence in ((0, Values.ROWS_EQUAL), (1, Values.COLUMNS_EQUAL)):
        equal = [_is_one_line(comparison.out[part], dim) for part in parts]
        differ = [not _is_one_line(comparison.expected[part], dim) for part in parts]
        telling = [comparison.out[part].narrow(dim, 0, 1).unique().numel() > 1 for part in parts]
        if parts and all(equal) and all(differ) and any(telling):
            return failed(Cause.CONSTANT, sentence(name=evidence.returns), kind="cause")
    return None


def _is_one_line(tile: torch.Tensor, dim: int) -> bool:
    """Returns whether all rows of a tile equal its first row; for dim 1, all columns its first column."""
    first = tile.narrow(dim, 0, 1)
    return bool(((tile == first) | (tile.isnan() & first.isnan())).all())


def _misplaced(evidence: Compared) -> Verdict | None:
    """Returns the verdict if many wrong tiles hold their right values turned, or those of other tiles; else None."""
    comparison, writers = evidence.comparison, evidence.writers
    tiles = tiles_of(writers) if writers is not None and not evidence.formula_is_right else None
    if tiles is None or not 1 < tiles.shape[0] * tiles.shape[1] <= 256 or comparison.wrong.dim() != 2:
        return None
    parts, name = tiles.parts, evidence.returns
    out, expected = comparison.out, comparison.expected
    wrong = [one for one in parts if bool(comparison.wrong[one].any()) and out[one].unique().numel() >= TELLING]
    turned = [one for one in wrong if torch.equal(out[one].flatten(), expected[one].t().flatten())]
    if turned and FEW * len(turned) >= len(wrong):
        return failed(Cause.NOT_TURNED, Values.NOT_TURNED(tile=_slice_text(name, turned[0])), kind="cause")
    others = (next((other for other in parts if torch.equal(out[one], expected[other])), None) for one in wrong)
    moved = [(one, other) for one, other in zip(wrong, others) if other is not None]
    if not moved or FEW * len(moved) < len(wrong):
        return None  # a single tile, as one row of few numbers, may equal another by chance
    tile, rightful = (_slice_text(name, one) for one in moved[0])
    said = Values.MISPLACED_TILE(name=name, tile=tile, rightful=rightful)
    return failed(Cause.MISPLACED_TILE, said, kind="cause")


def _slice_text(name: str, part: tuple[slice, slice]) -> str:
    rows, columns = part
    return f"{name}[{rows.start}:{rows.stop}, {columns.start}:{columns.stop}]"


def _layout(evidence: Compared) -> Verdict | None:
    """Returns the guess that strides, or the common address of two arguments, are used wrongly; else None."""
    if evidence.formula_is_right or not evidence.needs_plain_layouts:
        return None
    if evidence.trial.begins:
        part, (whole, behind) = next(iter(evidence.trial.begins.items()))
        said = (Values.ONE_MEMORY if behind else Values.ONE_ADDRESS)(part=part, whole=whole)
        return failed(Cause.STRIDE_IGNORED, said, kind="guess")
    strided = [name for name, tensor in evidence.tensors if not tensor.is_contiguous()]
    line = the_only(map(evidence.line_without_strides, strided))
    said = Values.STRIDE_IGNORED(names=in_words(strided))
    return failed(Cause.STRIDE_IGNORED, said, evidence.source_line(line), kind="guess", line=line)


def _flushed(evidence: Compared) -> Verdict | None:
    """Returns the verdict if all wrong elements are 0 and should be smaller than all right nonzero ones; else None."""
    comparison, size = evidence.comparison, evidence.comparison.expected.abs()
    wrong = comparison.wrong
    if not comparison.out.is_floating_point() or comparison.wrong_count < 2 or bool(comparison.out[wrong].any()):
        return None
    held = ~wrong & (comparison.out != 0)
    right, limit = size[held], float(size[wrong].max())
    if right.numel() < 2 or not limit < float(right.nan_to_num(posinf=torch.inf).min()):
        return None
    columns = [as_matrix(one).any(dim=0) for one in (wrong, held)]
    if wrong.dim() < 2 and tail_start(wrong) or wrong.dim() > 1 and not bool((columns[0] & columns[1]).any()):
        return None  # a part of each row is 0: the place of this part says more than its size
    return failed(Cause.FLUSHED, Values.FLUSHED(name=evidence.returns, limit=limit), kind="cause")


def _low_precision(evidence: Compared) -> Verdict | None:
    """Returns the verdict that digits were lost on the way: the formula is right. Without an exact run this is a guess,
    for errors up to the size of fp16 rounding. None for anything else."""
    comparison, exact_bound = evidence.comparison, evidence.wanted.bound in EXACT
    wrong = comparison.wrong & comparison.ref.isfinite() & comparison.out.isfinite()
    if evidence.formula_is_right is False or int(wrong.sum()) < comparison.wrong_count:
        return None
    rounded_early = exact_bound and evidence.wanted.dtype == torch.float32
    if evidence.formula_is_right is None and exact_bound and not rounded_early:
        return None
    scale = size_of_terms(evidence.wanted.bound, exact(evidence.inputs), comparison.ref)
    relative = float(((comparison.out.double() - comparison.ref).abs() / scale)[wrong].max())
    of_fp16 = UNIT_ROUNDOFF[torch.float16] / 4 <= relative <= 32 * UNIT_ROUNDOFF[torch.float16]
    if not of_fp16 and evidence.formula_is_right is None and (relative > UNIT_ROUNDOFF[torch.float16] or rounded_early):
        return None
    said = Values.ROUNDED_TO_FP16() if exact_bound else Values.LIKE_FP16(error=comparison.largest_error)
    advice, line = _where_digits_go(evidence)
    is_derived = isinstance(evidence.wanted.bound, str) or not evidence.wanted.bound.is_of_torch
    if advice is None or not of_fp16 or not is_derived or any(one.dtype != "fp16" for one in evidence.roundings):
        is_exact = not math.isfinite(comparison.largest_error)
        said = Values.NO_DIGITS_TO_LOSE() if is_exact else Values.FEW_DIGITS(error=comparison.largest_error)
    if advice is None:
        advice = Values.WHERE_DIGITS_GO()
        if not exact_bound and (of_exercise := evidence.advice().lost_digits) is not None:
            advice = of_exercise.said_of({})
    return _digits_or_range_verdict(said, advice, evidence, line)


def _digits_or_range_verdict(said: Said, advice: Said | None, evidence: Compared, line: int) -> Verdict:
    verdict = failed(Cause.LOW_PRECISION, said, advice, evidence.source_line(line), kind="guess", line=line)
    verdict.candidate = Cause.LOW_PRECISION
    return verdict


def _where_digits_go(evidence: Compared) -> tuple[Said | None, int]:
    """Returns what may lose digits, and its line, 0 if there are several; None if nothing does but fp32 itself."""
    added = {one.line for one in evidence.roundings}
    sums = [one for one in narrow_sums(evidence.submission.tree) if not added.isdisjoint(one.added)]
    if len(sums) == 1:
        (zeros,) = sums
        line = next(one for one in zeros.added if one in added)
        return Values.ZEROS_OF_16_BITS(line=zeros.line, name=zeros.name, dtype=zeros.dtype, added=line), zeros.line
    if len(evidence.roundings) == 1:
        (found,) = evidence.roundings
        return Values.STAY_IN_FP32(line=found.line, dtype=found.dtype), found.line
    if evidence.roundings:
        return Values.CONVERT_TO_FP32(), 0
    if line := the_only(line for kernel in evidence.kernels for line in kernel.tf32_lines):
        return Values.IN_TF32(line=line), line
    narrow = the_only(line for kernel in evidence.kernels for line in kernel.narrowing_lines)
    if narrow and evidence.wanted.dtype == torch.float32:
        return Values.STORED_IN_16_BITS(line=narrow, name=evidence.returns), narrow
    return None, 0


def _out_of_range(evidence: Compared) -> Verdict | None:
    """Returns the verdict on a right formula all of whose wrong elements are 0, infinite or NaN; None for others."""
    wrong, out = evidence.comparison.wrong, evidence.comparison.out
    if not evidence.formula_is_right or not bool((~out.isfinite() | (out == 0))[wrong].all()):
        return None
    said = Values.OUT_OF_RANGE(name=evidence.returns)
    line = the_only(one.line for one in evidence.roundings if one.dtype == "fp16")
    advice = Values.RANGE_OF_FP16(line=line) if line else None
    return _digits_or_range_verdict(said, advice, evidence, line)


def _constant(evidence: Compared) -> Verdict | None:
    """Returns the verdict on a single value everywhere, or in the first program, where values should differ."""
    out, expected, name = evidence.comparison.out, evidence.comparison.expected, evidence.returns
    if out.numel() < 2 or bool((expected == expected.flatten()[0]).all()):
        return None
    if evidence.wanted.is_updated and torch.equal(out, dict(evidence.tensors)[name]):
        return failed(Cause.UNCHANGED, Values.NOT_UPDATED(name=name))
    if evidence.wanted.is_argument and bool(is_poison(out).all()):
        return failed(Cause.UNCHANGED, Values.NOT_FILLED(name=name))
    if out.numel() < TELLING and not bool(evidence.comparison.wrong.all()):
        return None  # where numbers are rounded, few that differ little become the same by chance
    if bool(out.isnan().all()):
        few_numbers = 2 * evidence.comparison.wrong_count < out.numel()  # most are NaN as they should be
        return None if few_numbers else failed(Cause.CONSTANT, Values.NAN(name=name))
    if bool((out == out.flatten()[0]).all()):
        number = out.flatten()[0].item()
        if not out.is_floating_point():
            return failed(Cause.CONSTANT, Values.CONSTANT_WHOLE(name=name, number=number))
        return failed(Cause.CONSTANT, Values.CONSTANT(name=name, number=number + 0.0))  # -0 is 0
    numbers = out[~out.isnan()]
    if len(numbers) < out.numel() and bool((numbers == numbers[0]).all()):
        return failed(Cause.CONSTANT, Values.CONSTANT_OR_NAN(name=name, number=numbers[0].item() + 0.0))
    writers = evidence.writers
    if writers is None:
        return None
    first = int(writers.programs.flatten()[0])
    mine, due = out[writers.programs == first], expected[writers.programs == first]
    # Where all are 0 nothing was added, perhaps: numbers alone tell that lanes read the same.
    is_telling = mine.numel() > 1 and bool(mine.flatten()[0] != 0)
    if is_telling and bool((mine == mine[0]).all()) and not bool((due == due[0]).all()):
        said = Values.LANES_EQUAL(count=mine.numel(), program=_program_at(evidence, writers, first))
        return failed(Cause.CONSTANT, said, kind="cause")
    return None


def _special_values(evidence: Compared) -> Verdict | None:
    ordinary, wrong = _is_ordinary(evidence), evidence.comparison.wrong
    if not bool(ordinary.any()) or bool((wrong & ordinary).any()):
        return None
    return failed(Cause.WRONG_VALUES, Values.SPECIAL_VALUES(name=evidence.returns))


def _nothing_ordinary(evidence: Compared) -> Verdict | None:
    """Returns a guess if only inf, NaN and 0 are expected, so that ordinary numbers may be wrong too; else None."""
    if bool(_is_ordinary(evidence).any()):
        return None
    return failed(Cause.WRONG_VALUES, Values.SPECIAL_VALUES(name=evidence.returns), kind="guess")


def _is_ordinary(evidence: Compared) -> torch.Tensor:
    """Returns True for each element whose expected value is neither inf, NaN nor 0: bool, [shape of the result]."""
    expected = evidence.comparison.expected
    return expected.isfinite() & (expected != 0)


def _where_wrong(evidence: Compared) -> Said:
    """Returns the sentence about the number of wrong elements and their common place."""
    wrong, count = evidence.comparison.wrong, evidence.comparison.wrong_count
    right = evidence.right_results
    others = f"{in_words(right)} {'is' if len(right) == 1 else 'are'} right, and " if right else ""
    found: Fields = dict(others=others, name=evidence.returns, dtype=short_dtype(evidence.wanted.dtype))
    if count == wrong.numel():
        return Values.EVERY_ELEMENT(**found)
    found |= dict(count=count, total=wrong.numel())
    matrix = as_matrix(wrong)
    if wrong.dim() == 1 and (start := tail_start(wrong)):
        return Values.FROM_AN_ELEMENT_ON(start=start, **found)
    if start := tail_start(matrix.any(dim=0)):
        return Values.FROM_A_COLUMN_ON(start=start, **found)
    if wrong.dim() == 2 and (start := tail_start(matrix.any(dim=1))):
        return Values.FROM_A_ROW_ON(start=start, **found)
    return Values.SOME_ELEMENTS(**found)


def _alike_everywhere(evidence: Compared) -> Said | None:
    """Returns the sentence about a difference or a factor that all wrong elements share; None if they share none."""
    seen = evidence.exactly or evidence
    wrong = evidence.comparison.wrong & seen.comparison.ref.isfinite() & seen.output.isfinite()
    out, ref = seen.output.double()[wrong], seen.comparison.ref.double()[wrong]
    if int(wrong.sum()) < max(TELLING, evidence.comparison.wrong_count) or ref.unique().numel() < TELLING:
        return None
    difference, factor = out - ref, out / ref
    if bool(((difference - difference[0]).abs() <= ALIKE * ref.abs().max()).all()):
        return Values.TOO_LARGE_BY(difference=float(difference[0]))
    if bool(((factor - factor[0]).abs() <= ALIKE * factor[0].abs()).all()):
        return Values.TIMES(factor=float(factor[0]) + 0.0)  # -0 is 0
    return None
