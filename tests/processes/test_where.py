"""The line in which a child was when its time was used up, read from what it printed last."""

from __future__ import annotations

from grader.processes.where import HEAD, Where, stack_in, where_in

FRAMES = b'  File "/x/softmax.py", line 17 in softmax\n  File "/x/grader/child/learner.py", line 3 in call\n'


def test_the_first_line_of_the_file_in_the_last_stack_is_told():
    printed = b"a line\n" + HEAD + b'  File "/x/softmax.py", line 3 in softmax\n' + HEAD + FRAMES
    assert stack_in(printed) == HEAD + FRAMES and where_in(printed, "softmax.py") == Where(17)


def test_what_the_file_prints_without_a_stack_is_no_stack():
    printed = b'here\n  File "softmax.py", line 3 in softmax\n'
    assert stack_in(printed) == b"" and where_in(printed, "softmax.py") == Where()


def test_a_compiler_at_work_is_told():
    printed = HEAD + b'  File "/y/triton/compiler/compiler.py", line 9 in compile\n' + FRAMES
    assert where_in(printed, "softmax.py") == Where(17, compiling=True)
