"""A kernel and a constexpr function reach Triton's public names, their own values, and nothing else."""

from __future__ import annotations

import pytest
from triton.compiler.errors import CompilationError

from grader.front_end.file_kernels import NotInFile
from grader.front_end.file_scope import NotPlain

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


def test_a_star_brings_no_modules(text):
    with pytest.raises(CompilationError):
        text("extra.modules", "from triton.language import *\n")


LIES = {
    "a module": ["f", 0, {"public": "os"}],
    "a function of a module": ["f", 0, {"public": "os.system"}],
    "a hidden function of Triton": ["f", 0, {"public": "triton.language.str_to_ty"}],
    "a hidden module of Triton": ["f", 0, {"public": "triton.language.core"}],
    "a function that is not there": ["f", 0, {"function": ["nothing", 3]}],
    "an expression": ["f", 0, {"value": "__import__('os')"}],
    "a dtype that is none": ["f", 0, {"dtype": "__class__"}],
}


@pytest.mark.parametrize("name", LIES)
def test_a_recipe_does_not_lead_to(text, name):
    with pytest.raises(CompilationError, match="Cannot access global variable f"):
        text("f(i)", globals=[LIES[name]])


def test_a_recipe_does_not_say_what_the_file_says(text):
    told = [["tl", 0, {"public": "math"}], ["e", 0, {"public": "triton.language.exp2"}]]
    assert '"math.exp"' in text("e(i + 0.0)", "e = tl.exp\n", globals=told)
    told = [["helper", 0, {"public": "triton.language.exp"}]]
    assert '"math.exp"' not in text("helper(i + 0.0)", HELPER, globals=told)
    told, pair = [["Pair", 0, {"public": "triton.language.exp"}]], "from collections import namedtuple\n"
    assert "math.exp" not in text("Pair(1, 2).x", pair + 'Pair = namedtuple("Pair", "x y")\n', globals=told)


def test_a_recipe_does_not_say_what_a_constant_is_that_stands_in_the_file(text):
    before, told = "SIZE = 3\nSCALE = tl.constexpr(2.0 * SIZE)\n", [["SCALE", 1, {"value": "1.0"}]]
    assert "dense<6.000000e+00>" in text("SCALE", before, globals=told)
    assert "dense<8.000000e+00>" in text("SCALE", before, globals=told, set={"SIZE": 4})
    assert "dense<1.000000e+00>" in text("SCALE", "import os\nSCALE = tl.constexpr(os.nice(0))\n", globals=told)
    assert "dense<1.000000e+00>" in text("SCALE", before + "SCALE = tl.constexpr(5.0)\n", globals=told)


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
