"""A `while` whose condition asks for numbers that no iteration changes is ended at once, and no other loop is."""

import pytest
import torch

X = torch.ones(64)
HEAD = """
@triton.jit
def kernel(x_ptr, z_ptr, N, step):
    p = tl.program_id(0)
    acc = 0.0
{body}
    tl.store(z_ptr + p, acc)

def total(x):
    z = torch.empty(4, device="cuda")
    kernel[(4,)](x, z, 4, 0)
    return z
"""
ENDLESS = {
    "the step is forgotten": "k = 0\nwhile k < N:\n    acc += tl.load(x_ptr + k)",
    "the step is zero": "k = 0\nwhile k < N:\n    acc += tl.load(x_ptr + k)\n    k += step",
    "one program alone": "k = 0\nwhile k < N:\n    acc += tl.load(x_ptr + k)\n    k += (p - 2) * (p - 2)",
    "two numbers that change places": "a = N\nb = N\nwhile a + b > 0:\n    acc += 1.0\n    c = a\n    a = b\n    b = c",
    "around another loop": (
        "k = 0\nwhile k < N:\n    for j in range(N):\n        acc += tl.load(x_ptr + j)\n    k += step"
    ),
}
WITH_AN_END = {
    "another step": "k = 0\nwhile k < N:\n    acc += tl.load(x_ptr + k)\n    k += 1 + step",
    "a number that stands still for a turn": (
        "k = N\nj = 0\nwhile k > 0:\n    acc += 1.0\n    k = N - j // 2\n    j += 1"
    ),
    "programs that end at different turns": "k = 0\nwhile k < p:\n    acc += tl.load(x_ptr + k)\n    k += 1",
    "what a turn has stored": (
        "tl.store(z_ptr + p, acc)\nwhile tl.load(z_ptr + p) < 3.0:\n    acc += 1.0\n    tl.store(z_ptr + p, acc)"
    ),
    "a branch that moves it on": "k = 0\nwhile k < N:\n    acc += 1.0\n    if acc > 2.0:\n        k += 1",
}


def run(child, body: str):
    child.load(HEAD.format(body="\n".join(f"    {line}" for line in body.splitlines())))
    return child.run("total", x=X)


@pytest.mark.parametrize("body", ENDLESS.values(), ids=list(ENDLESS))
def test_it_is_told_by_the_line_of_the_loop(child, body):
    error = run(child, body).error
    assert (error["kind"], error["type"]) == ("endless", "Endless") and error["line"] == child.line("while ")


@pytest.mark.parametrize("body", WITH_AN_END.values(), ids=list(WITH_AN_END))
def test_a_loop_with_an_end_comes_to_it(child, body):
    reply = run(child, body)
    assert reply.error is None and reply.findings == []
