"""The results of a recorded call, by the names that the exercise gives them."""

from __future__ import annotations

from collections.abc import Sequence

from grader.wire.messages import DTYPE_BYTES, TensorSpec
from grader.wire.recorded_parts import PlannedView, Returned


def results_by_name(
    returned: Returned, arguments: Sequence[TensorSpec], returns: Sequence[str], updates: Sequence[str]
) -> dict[str, PlannedView]:
    """Returns the view of each result by name: of the returned tensors, then of the arguments that are updated.

    Results that are no tensors of the call, or of other dtypes than an entry's, are left out. arguments: the call's
    tensors, whose buffers are its first. returns: the names of what the entry has to return. updates: the names of
    arguments that it changes in place.
    """
    items = [returned] if len(returns) == 1 else returned.items
    views = {name: one.view for name, one in zip(returns, items) if one.view and one.view.dtype in DTYPE_BYTES}
    specs = {spec.name: (number, spec) for number, spec in enumerate(arguments)}
    for name in updates:
        number, spec = specs[name]
        offset = spec.offset * DTYPE_BYTES[spec.dtype]
        views.setdefault(name, PlannedView(number, offset, spec.dtype, list(spec.shape), list(spec.strides)))
    return views
