"""A kernel and a constexpr function reach Triton's public names, their own values, and nothing else."""

from __future__ import annotations

import pytest
import triton.language as tl
from triton.compiler.errors import CompilationError

from grader.front_end.file_kernels import NotInFile
from grader.front_end.told_values import NotPlain
from tests.front_end.by_hand import PREAMBLE

PAIR = 'from collections import namedtuple\nPair = namedtuple("Pair", "x y")\n'
THREE = "from typing import NamedTuple\nclass Three(NamedTuple):\n    {}\n    x: int = 1\n"
HELPER = "@triton.jit\ndef helper(x):\n    return x\n\n"
REFUSED = {
    "the globals of a function": "tl.load.__globals__",
    "all classes": "().__class__.__base__.__subclasses__()",
    "a module behind a module": "tl.core",
    "a module behind a submodule": "tl.extra.modules",
    "a function that is not public": "tl.str_to_ty",
    "a builtin of Python": "eval('1')",
    "an import": "__import__('os')",
    "an attribute by its name": "getattr(tl, 'core')",
    "an attribute by a name in parts": "getattr(tl.load, '__glo' + 'bals__')",
    "the builtins": "__builtins__",
    "a text that reads attributes": "'{0.__class__}'.format(1)",
    "the scope of a kernel": "helper.get_capture_scope()",
    "the function of a kernel": "helper.fn",
    "a handle of the compiler": "i.handle",
    "a method of a class": "tl.tensor.__init__",
    "what a type knows": "i.type.mro",
    "a generator's frame": "(k for k in (1,)).gi_frame",
    "a function of a function": "(lambda: 1).__globals__",
    "a keyword that the compiler gives": "tl.load(x_ptr + i).handle",
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_kernel_does_not_reach(text, name):
    with pytest.raises(CompilationError):
        text(REFUSED[name], HELPER)


CONSTEXPR = "@triton.constexpr_function\ndef value(n):\n    {body}\n\n"


@pytest.mark.parametrize("name", [name for name in REFUSED if " i." not in f" {REFUSED[name]}"])
def test_a_constexpr_function_does_not_reach(text, name):
    expression = REFUSED[name].replace("x_ptr + i", "n")
    with pytest.raises(CompilationError):
        text("value(BLOCK)", HELPER + CONSTEXPR.format(body=f"return {expression}"))


def test_a_name_that_hides_a_builtin_in_another_scope_reaches_none(text):
    for body in ("[0 for exec in ()]\n    exec('1')", "if n < 0:\n        getattr = 1\n    return getattr(tl, 'core')"):
        with pytest.raises(CompilationError):
            text("value(BLOCK)", CONSTEXPR.format(body=body))
    with pytest.raises(CompilationError, match="reads no attribute core"):
        text("getattr(tl, 'core'))\n    if BLOCK < 0:\n        getattr = (1")


def test_fields_of_a_class_are_no_attributes_of_other_values(text):
    before = "class Words:\n    gi_frame: int\n    handle: int\n\n" + HELPER
    for value in ("i.handle", "helper.handle"):
        with pytest.raises(CompilationError, match="reads no attribute handle"):
            text(value, before)


def test_an_import_in_a_function_changes_no_name(text):
    before = "def never():\n    import math as tl\n    from os import system as exp\n\n"
    assert '"math.exp"' in text("tl.exp(i + 0.0)", before)


STARS = "from triton.language import *\nfrom torch import *\n"


@pytest.mark.parametrize("value", ["extra.modules", "exp(i + 0.0)", "sum((1, 2))", "e(i + 0.0)"])
def test_a_name_that_a_star_may_bring_is_refused(text, value):
    with pytest.raises(NotPlain, match=r"may come from the `import \*` in line 4"):
        text(value, "from triton.language import exp2 as e\n" + STARS)


def test_a_name_that_is_bound_after_a_star_is_none_of_its_names(text):
    before = STARS + "import triton\nimport triton.language as tl\nfrom triton.language import exp2 as e\n"
    told = [["tl", 0, {"public": "triton.language"}], ["e", 0, {"public": "triton.language.exp2"}]]
    assert '"math.exp2"' in text("e(i + 0.0)", before, told=told)


LIES = {
    "a module": ["f", 0, {"public": "os"}],
    "a function of a module": ["f", 0, {"public": "os.system"}],
    "a hidden function of Triton": ["f", 0, {"public": "triton.language.str_to_ty"}],
    "a hidden module of Triton": ["f", 0, {"public": "triton.language.core"}],
    "a function that is not there": ["f", 0, {"function": ["nothing", 3]}],
    "an expression": ["f", 0, {"value": "__import__('os')"}],
    "a list": ["f", 0, {"value": "[1.0]"}],
    "a dtype that is none": ["f", 0, {"dtype": "__class__"}],
}


@pytest.mark.parametrize("name", LIES)
def test_a_recipe_does_not_lead_to(text, name):
    with pytest.raises(CompilationError, match="Cannot access global variable f"):
        text("f(i)", "import os\nf = os.nice(0)\n", told=[LIES[name]])


@pytest.mark.parametrize(
    ("value", "before", "told"),
    [
        ("tl.exp(i + 0.0)", "", ["tl", 0, {"public": "math"}]),
        ("e(i + 0.0)", "e = tl.exp\n", ["e", 0, {"public": "triton.language.exp2"}]),
        ("e(i + 0.0)", "if tl:\n    e = tl.exp\n", ["e", 0, {"public": "triton.language.exp2"}]),
        ("e(i)", "if tl:\n    from triton.language import exp as e\n", ["e", 0, {"public": "triton.language.exp2"}]),
        ("helper(i)", HELPER, ["helper", 0, {"public": "triton.language.exp"}]),
        ("helper(i)", HELPER.replace("@triton.jit\n", ""), ["helper", 0, {"public": "triton.language.abs"}]),
        ("Pair(1, 2).x", PAIR, ["Pair", 0, {"public": "triton.language.exp"}]),
        ("Pair(1, 2).x", PAIR, ["Pair", 0, {"tuple": ["Pair", ["y", "x"], []]}]),
        ("SCALE", "SIZE = 3\nSCALE = tl.constexpr(2.0 * SIZE)\n", ["SCALE", 1, {"value": "1.0"}]),
        ("SCALE", "SCALE = 3.0\n", ["SCALE", 1, {"value": "3.0"}]),
        ("SCALE", "SCALE = tl.constexpr(3.0)\nSCALE = tl.constexpr(4.0)\n", ["SCALE", 1, {"value": "1.0"}]),
        ("SCALE", "SCALE = tl.constexpr(f'{1.0!r}')\n", ["SCALE", 1, {"value": "'1'"}]),
        ("e(i + 0.0)", "e = tl.exp2\ne = tl.exp\n", ["e", 0, {"public": "triton.language.exp2"}]),
        ("Pair(1, 2).x", PAIR, ["Pair", 0, {"tuple": ["Two", ["x", "y"], []]}]),
        ("Three().x", THREE.format("pass"), ["Three", 0, {"tuple": ["Three", ["x"], [["x", 0, {"value": "2"}]]]}]),
    ],
)
def test_a_recipe_does_not_say_what_the_file_says(text, value, before, told):
    with pytest.raises(NotPlain, match=f"{told[0]} has another value at the launch than line"):
        text(value, before, told=[told])


def test_a_builtin_that_no_line_binds_has_no_value_of_the_file(text):
    with pytest.raises(NotPlain, match="min is Python's own, and no line of the file gives it another value"):
        text("min(i, i)", told=[["min", 0, {"public": "triton.language.maximum"}]])


@pytest.mark.parametrize(
    "also", ["N = 1", "if tl: y: int = 2", "x: int = 2", "for x in (): pass", "def __add__(self, o): pass"]
)
def test_a_tuple_whose_fields_are_made_in_other_ways_is_refused(text, also):
    with pytest.raises(NotPlain, match="Three has another value at the launch than line 4"):
        text(
            "Three().x",
            THREE.format(also),
            told=[["Three", 0, {"tuple": ["Three", ["x"], [["x", 0, {"value": "1"}]]]}]],
        )


COMPARED = {
    "classes": "Pair == Other",
    "a class as a key": "{Pair: 0}[Other]",
    "a class among others": "Pair in (Other, 1)",
    "functions": "helper == helper",
    "tuples of functions": "(helper, 1) != (helper, 2)",
    "the class of a tuple": "isinstance(HELD, Pair)",
    "one of several classes": "isinstance(HELD, (int, Pair))",
    "a NaN in a tuple": "(NAN, 1) == (NAN, 1)",
    "the place of a NaN": "(1.0, NAN).index(NAN)",
    "the greater of two tuples": "max((NAN, 1), (NAN, 2))[1]",
    "the text of a class": "f'{Pair}' == 'a'",
    "the text of a function": "'%s' % helper == 'a'",
    "the text of a tuple's type": "(NAN, 1).type.name == 'a'",
}


@pytest.mark.parametrize("in_a_kernel", [True, False])
@pytest.mark.parametrize("title", COMPARED)
def test_what_the_objects_of_another_process_would_answer_is_refused(text, title, in_a_kernel):
    before = f"{PAIR}Other = Pair\nHELD = tl.constexpr(Pair(1, 2))\nNAN = tl.constexpr(float('nan'))\n{HELPER}"
    value = f"1.0 if {COMPARED[title]} else 2.0"
    if not in_a_kernel:
        before, value = before + CONSTEXPR.format(body=f"return {value}"), "value(BLOCK)"
    with pytest.raises(CompilationError):
        text(value, before)


def test_a_constant_has_a_value_and_no_type_of_its_own(text):
    with pytest.raises(CompilationError, match="reads no attribute type of constexpr"):
        text("N.type.value", "N = tl.constexpr(1.0)\n")


def test_a_class_under_the_name_of_named_tuples_is_none(text):
    before = (
        "def never():\n    from typing import NamedTuple\nclass NamedTuple: pass\nclass Two(NamedTuple):\n    x: int\n"
    )
    with pytest.raises(NotPlain, match="Two has another value at the launch than line 6"):
        text("Two(1).x", before, told=[["Two", 0, {"tuple": ["Two", ["x"], []]}]])


NOT_MADE = {
    "another decorator of this name": "import math as jit\ndef never():\n    from triton import jit\n"
    "@jit\ndef helper(x):\n    return x\n",
    "a decorator that was Triton's": "jit = triton.jit\njit = abs\n"
    "@jit\ndef helper(x):\n    return x\njit = triton.jit\n",
    "a function that is another by then": "def helper(x):\n    return x\nhelper = abs\ne = triton.jit(helper)\n",
    "a parameter": "def helper(x):\n    return x\ndef make(helper):\n    return triton.jit(helper)\n",
}


@pytest.mark.parametrize("title", NOT_MADE)
def test_a_function_that_something_else_makes_is_refused(text, title):
    before = "import os\nf = os.nice(0)\n" + NOT_MADE[title]
    line = next(
        n for n, text in enumerate((PREAMBLE + before).splitlines(), 1) if "@jit" in text or "helper(x)" in text
    )
    with pytest.raises(NotPlain, match="something else than triton.jit makes helper in line"):
        text("f(i)", before, told=[["f", 0, {"function": ["helper", line]}]])


def test_a_constexpr_function_is_not_called_before_its_names_have_values(text, monkeypatch):
    """Until then it would be the file's own function, which Python runs as it stands there."""
    monkeypatch.setattr(tl, "called", [], raising=False)
    before = CONSTEXPR.format(body="tl.called.append(N)\n    return 1") + "N = value(0)\n"
    with pytest.raises(CompilationError):
        text("value(BLOCK)", before.replace("append(N)", "append(1)\n    N"))
    assert tl.called == []


def test_a_name_that_stands_for_hundreds_of_others_is_refused(text):
    others = "".join(f"A{n} = A{n - 1}\n" for n in range(1, 400))
    with pytest.raises(NotPlain, match="made of too many names"):
        text("f(i)", f"A0 = 1\n{others}f = A399\n", told=[["f", 0, {"public": "triton.language.abs"}]])


def test_constants_that_are_made_of_many_others_are_found_once_each(text):
    doubled = "".join(f"A{n} = A{n - 1} + A{n - 1}\n" for n in range(1, 65))
    before = f"A0 = 1\n{doubled}SELF = SELF\nSCALE = tl.constexpr(A64 / 2.0**64)\n"
    assert "dense<1.000000e+00>" in text("SCALE", before, told=[["SCALE", 1, {"value": "1.0"}]])
    with pytest.raises(CompilationError, match="SELF is not defined"):
        text("SELF", before)


def test_a_recipe_says_which_of_the_bindings_of_a_name_came_to_pass(text):
    two = "SCALE = tl.constexpr(3.0)\nif tl:\n    SCALE = tl.constexpr(4.0)\n"
    for value in ("3.0", "4.0"):
        assert f"dense<{value[0]}.000000e+00>" in text("SCALE", two, told=[["SCALE", 1, {"value": value}]])
    computed = "import os\nSCALE = tl.constexpr(os.nice(0))\n"
    assert "dense<1.000000e+00>" in text("SCALE", computed, told=[["SCALE", 1, {"value": "1.0"}]])


def test_constants_of_a_call_count_for_what_is_made_of_them(text):
    before = "SIZE = 3\nSCALE = tl.constexpr(2.0 * SIZE)\n"
    assert "dense<8.000000e+00>" in text("SCALE", before, told=[["SCALE", 1, {"value": "8.0"}]], set={"SIZE": 4})
    with pytest.raises(NotPlain):
        text("SCALE", before, told=[["SCALE", 1, {"value": "10.0"}]], set={"SIZE": 4})


@pytest.mark.parametrize(
    "before",
    [
        "max = tl.exp\ndef f(max): pass\n", "class A:\n    max = tl.exp2\nmax = tl.exp\n",
        "max = tl.exp\ng = lambda max: 1\n[0 for max in ()]\n", "max = tl.exp\ndef f():\n    import math as max\n",
    ],
)  # fmt: skip
def test_names_of_other_scopes_are_no_bindings_of_a_name(text, before):
    assert '"math.exp"' in text("max(i + 0.0)", before)
    with pytest.raises(NotPlain):
        text("max(i + 0.0)", before, told=[["max", 0, {"public": "triton.language.exp2"}]])


@pytest.mark.parametrize(
    "also",
    [
        "def f():\n    global max\n    max = 1", "for max in (): pass", "[0 for i in () if (max := 2)]",
        "match 1:\n    case {**max}: pass", "def f(x=(max := 3)): pass", "del max", "with open('x') as max: pass",
        "class A(metaclass=(max := type)): pass", "g = lambda x=(max := 3): x", "max += 1", "max, min = 1, 2",
        "try: pass\nexcept ImportError as max: pass", "class A:\n    global max\n    max = 1",
    ],
)  # fmt: skip
def test_a_name_that_other_statements_bind_too_is_not_certain(text, also):
    before = f"max = tl.exp\n{also}\n"
    with pytest.raises(CompilationError):
        text("max(i + 0.0)", before)  # nobody said what it means
    assert '"math.exp2"' in text("max(i + 0.0)", before, told=[["max", 0, {"public": "triton.language.exp2"}]])


def test_what_a_class_of_tuples_may_have_is_not_told_as_absent(text):
    before = PAIR + CONSTEXPR.format(body="return 1.0 if hasattr(Pair(1, 2), 'area') else 2.0")
    with pytest.raises(CompilationError, match="reads no attribute area of Pair"):
        text("value(BLOCK)", before)
    before = "N = tl.constexpr(1)\n" + CONSTEXPR.format(body="return 1.0 if hasattr(N, 'bit_length') else 2.0")
    assert "dense<2.000000e+00>" in text("value(BLOCK)", before)


ABSENT = [["max", 0, {"absent": ""}]]


@pytest.mark.parametrize(
    "before",
    ["max = tl.minimum\n", "max = tl.abs\nmax = tl.minimum\n", "max = tl.minimum\nif tl:\n    max = tl.abs\n"],
)
def test_a_name_that_the_file_gives_a_value_has_one(text, before):
    with pytest.raises(NotPlain, match="max has no value at the launch, and line [34] gives it one"):
        text("max(BLOCK, 1)", before, told=ABSENT)


@pytest.mark.parametrize("before", ["", "max = tl.minimum\ndel max\n", "if not tl:\n    max = tl.minimum\n"])
def test_a_name_without_a_value_is_pythons_own(text, before):
    assert "dense<1.600000e+01>" in text("max(BLOCK, 1)", before, told=ABSENT)
    with pytest.raises(CompilationError, match="maximum is not defined"):
        text("maximum(BLOCK, 1)", before.replace("max", "maximum"), told=[["maximum", *ABSENT[0][1:]]])


TAKEN_AWAY = """
from typing import NamedTuple
class getattr(NamedTuple):
    x: int

@triton.jit
def getattr(x):
    {body}

"""


@pytest.mark.parametrize("body", ["[0 for getattr in ()]", "getattr: 1 = 0", "return x"])
def test_a_kernel_that_is_never_called_changes_no_builtin(text, body):
    with pytest.raises(CompilationError, match="reads no attribute core"):
        text("getattr(tl, 'core').x", TAKEN_AWAY.format(body=body))


def test_an_attribute_that_may_not_be_read_is_not_told_as_absent(text):
    for value in ("getattr(tl, 'core', 1.0)", "1.0 if hasattr(tl, 'core') else 2.0"):
        with pytest.raises(CompilationError, match="reads no attribute core"):
            text(value)
    assert "dense<1.000000e+00>" in text("getattr(tl, 'nothing', 1.0)")
    assert "dense<2.000000e+00>" in text("1.0 if hasattr(tl, 'nothing') else 2.0")


FAKE = """
if tl:
    @triton.jit
    def other(x_ptr, BLOCK: tl.constexpr):
        '''
def other(x_ptr, BLOCK: tl.constexpr):
    tl.store(x_ptr, 2.0)
    '''
        tl.store(x_ptr, 1.0)
        "'''#"

"""


def test_a_text_that_only_triton_takes_for_the_function_is_refused(text):
    """Triton looks for the first `def` in a function's lines, and finds it in a string."""
    with pytest.raises(NotPlain, match="Triton reads another function"):
        text("1.0", FAKE, function="other", line=5)


def test_a_recipe_names_a_kernel_by_its_line(text):
    for changed in ({"line": 1}, {"function": "helper"}, {"function": "tl"}):
        with pytest.raises(NotInFile):
            text("1.0", HELPER, **changed)


def test_a_constant_that_is_no_plain_value_is_refused(text):
    with pytest.raises(NotPlain):
        text("1.0", constants=[[[1], {"other": "class A"}]])
    with pytest.raises(NotPlain):
        text("1.0", constants=[[[1], {"public": "os.system"}]])


def test_a_symbol_that_is_no_name_is_left_out(text):
    assert '"kernel"' in text("1.0", symbol='x"} { evil') and '"other"' in text("1.0", symbol="other")
