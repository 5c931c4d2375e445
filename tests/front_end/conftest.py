"""Calls that a real child records, and the front end in this process."""

from tests.child.recorded_calls import recording  # noqa: F401
from tests.front_end.by_hand import text, unguarded_afterwards  # noqa: F401
