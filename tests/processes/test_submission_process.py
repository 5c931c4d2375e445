"""Whatever a submission's process answers, it is a sentence about the file: the parent stays small, quick and sound."""

from __future__ import annotations

import pytest

from grader.processes import submission_process
from grader.processes.faults import ChildEnded
from grader.wire.messages import RecordRequest
from grader.wire.reply import spec_of
from tests.child.recorded_calls import entry, meta, recording  # noqa: F401

RIGHT = entry("return launch(x, torch.empty_like(x))")

# The file takes over what its process sends: `changed` makes an answer of each that has a kind of `kinds`.
TAKEN_OVER = """
import json
from grader.child import serving

def frame(header, blob):
    text = json.dumps(header).encode()
    return serving.LENGTHS.pack(len(text), len(blob)) + text + blob

serving.pack = lambda header, blob=b"": frame(*(changed(header, blob) if header["kind"] in KINDS else (header, blob)))
"""


def answering(body: str, kinds: str = "'recorded',") -> str:
    """A file whose calls are answered with what `body` returns, of `header` and `blob`."""
    return f"{RIGHT}\nKINDS = [{kinds}]\ndef changed(header, blob):\n    {body}\n{TAKEN_OVER}"


def end_of(call, **arguments) -> ChildEnded:
    with pytest.raises(ChildEnded) as ended:
        call("entry", **(arguments or {"x": meta(512)}))
    return ended.value


GARBLED = {
    "a blob of 33 MiB": ("return header, bytes(33 << 20)", "a message has 3460"),
    "a header of 2 MiB": ("return {**header, 'more': 'x' * (2 << 20)}, blob", "a message's header has 209"),
    "NaN where nobody looks": ("return {**header, 'more': float('nan')}, blob", "holds NaN"),
    "infinity where nobody looks": ("return {**header, 'more': [1e400]}, blob", "a number without end"),
    "no message": ("return [], blob", "not an object with a kind"),
}


@pytest.mark.parametrize("name", GARBLED)
def test_an_answer_that_is_none_ends_the_call_and_no_more(recording, name):  # noqa: F811
    body, said = GARBLED[name]
    call = recording(answering(body))
    for _ in range(2):
        ended = end_of(call)
        assert ended.how == "garbled" and said in ended.detail, ended
    assert call.runner.load_ended is None


FAULT = "return {'kind': 'fault', 'message': 'Traceback\\nRuntimeError: \\x1b[31mfull marks'}, blob"


def test_that_the_grader_failed_is_not_believed_of_a_file(recording):  # noqa: F811
    ended = end_of(recording(answering(FAULT)))
    assert ended.how == "garbled"
    assert ended.detail == "the grader's part of it failed: RuntimeError: ?[31mfull marks"


def test_nor_is_it_believed_of_its_import(recording):  # noqa: F811
    call = recording(answering(FAULT, "'loaded',"))
    ended = end_of(call)
    assert ended.how == "garbled" and "RuntimeError" in ended.detail
    assert call.runner.load_ended is ended and end_of(call) is ended


@pytest.mark.parametrize(
    ("body", "limit", "said"),
    [
        ("return header, blob + bytes(1 << 20)", "MOST_BYTES", "the answers to all calls together"),
        ("return {**header, 'more': 'x' * 900_000}, blob", "MOST_HEADER_BYTES", "the headers of the answers"),
    ],
)
def test_answers_of_a_run_are_bounded_together(recording, monkeypatch, body, limit, said):  # noqa: F811
    monkeypatch.setattr(submission_process, limit, 4 << 20)
    call = recording(answering(body))
    with pytest.raises(ChildEnded) as ended:
        for size in range(1, 10):
            call("entry", x=meta(size))
    assert 3 <= size <= 5 and ended.value.how == "garbled" and said in ended.value.detail, ended.value


def test_constants_are_names_with_a_number(recording):  # noqa: F811
    said = "{'BLOCK': 64, 'large': 1 << 70, 'half': 0.5, 'a\\x1b[31m': 3, 'pass everything': 1}"
    call = recording(answering(f"return {{**header, 'constants': {said}}}, blob", "'loaded',"))
    call("entry", x=meta(512))
    assert call.runner.constants == {"BLOCK": 64}


BURNS = "import time\nuntil = time.process_time() + 0.4\nwhile time.process_time() < until:\n    pass\n"


def test_calls_that_compute_a_little_each_are_ended_together(recording, monkeypatch):  # noqa: F811
    monkeypatch.setattr(submission_process, "MOST_COMPUTING", 1.0)
    call = recording(entry(f"{BURNS}return launch(x, torch.empty_like(x))"))
    with pytest.raises(ChildEnded) as ended:
        for size in range(1, 10):
            call("entry", x=meta(size))
    assert size <= 4 and call.runner.spent.computing > 0.9
    assert (ended.value.how, ended.value.detail) == ("time", "the 1 s of a core that all its calls together may take")
    assert end_of(call) is ended.value and call.runner._child is None


def test_the_call_that_uses_up_what_all_may_take_is_told_by_its_line(recording, monkeypatch):  # noqa: F811
    monkeypatch.setattr(submission_process, "MOST_COMPUTING", 1.0)
    call = recording(entry("while x.numel() == 3:\n    pass\nreturn launch(x, torch.empty_like(x))"))
    ended = end_of(call, x=meta(3))
    assert ended.detail == "the 1 s of a core that all its calls together may take"
    assert ended.where.line in (call.line("while x.numel"), call.line("while x.numel") + 1)


def test_where_a_first_call_hung_is_told_where_nothing_is_left_for_another(recording, monkeypatch):  # noqa: F811
    call = recording(entry("while x.numel() == 3:\n    pass\nreturn launch(x, torch.empty_like(x))"))
    request = RecordRequest("entry", [spec_of("x", meta(3))]).to_json()
    with pytest.raises(ChildEnded) as first:
        call.runner.ask(request, b"", 1.0, lambda *answer: answer)
    monkeypatch.setattr(submission_process, "MOST_COMPUTING", call.runner.spent.computing / 2)
    ended = end_of(call)
    assert ended.detail == "1 s" and ended.where == first.value.where
    assert ended.where.line


def test_another_runner_of_the_same_run_has_what_is_left(recording, monkeypatch):  # noqa: F811
    call = recording(RIGHT)
    call("entry", x=meta(512))
    monkeypatch.setattr(submission_process, "MOST_COMPUTING", call.runner.spent.computing / 2)
    another = recording(RIGHT)
    another.runner.spent = call.runner.spent
    call.runner.end()
    assert "all its calls together" in end_of(another).detail


def test_the_import_is_no_call(recording):  # noqa: F811
    call = recording(f"{BURNS}{RIGHT}")
    call("entry", x=meta(512))
    call.runner.end()
    spent = call.runner.spent
    assert spent.importing > 0.3
    assert spent.importing + spent.computing == pytest.approx(call.runner.seconds_of_a_core)


def test_imports_of_processes_that_end_in_each_call_are_ended_together(recording, monkeypatch):  # noqa: F811
    monkeypatch.setattr(submission_process, "LOAD_LIMIT", 1.0)
    call = recording(f"{BURNS}{entry('import os; os._exit(3)')}")
    ends = [end_of(call) for _ in range(5)]
    assert ends[0].how == "exit" and ends[-1] is call.runner.load_ended
    assert ends[-1].how == "time" and ends[-1].detail.startswith("the 1 s of a core that all its processes together")
