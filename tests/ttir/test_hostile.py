"""Text that no Triton wrote is refused with a sentence, whatever it holds, and soon."""

from __future__ import annotations

import random
import time

import pytest

from grader.ttir.module import BadText
from grader.ttir.parser import MOST_TEXT, parse

LOC = "loc(unknown)"
LONGEST = 6.0  # seconds for a text of MOST_TEXT characters on a slow machine


def kernel(body: str, parameters: str = "%p: !tt.ptr<f32> loc(unknown), %n: i32 loc(unknown)", more: str = "") -> str:
    """A module of one kernel with these lines inside; the return is added."""
    types = ", ".join(part.split(": ")[1].split(" loc")[0] for part in parameters.split(", ")) if parameters else ""
    lines = "\n".join(f"    {line}" for line in body.strip().splitlines())
    return f"""\
"builtin.module"() ({{
  "tt.func"() <{{function_type = ({types}) -> (), sym_name = "k", sym_visibility = "public"}}> ({{
  ^bb0({parameters}):
{lines}
    "tt.return"() : () -> () {LOC}
  }}) {{noinline = false}} : () -> () {LOC}
{more}}}) : () -> () {LOC}
"""


GOOD = f"""
%c = "arith.constant"() <{{value = 3 : i32}}> : () -> i32 {LOC}
%s = "arith.addi"(%n, %c) <{{overflowFlags = #arith.overflow<none>}}> : (i32, i32) -> i32 {LOC}
%q = "tt.addptr"(%p, %s) : (!tt.ptr<f32>, i32) -> !tt.ptr<f32> {LOC}
%v = "tt.load"(%q) <{{isVolatile = false, operandSegmentSizes = array<i32: 1, 0, 0>}}> : (!tt.ptr<f32>) -> f32 {LOC}
%b = "arith.cmpi"(%n, %c) <{{predicate = 2 : i64}}> : (i32, i32) -> i1 {LOC}
%r = "scf.if"(%b) ({{
  %w = "arith.addf"(%v, %v) <{{fastmath = #arith.fastmath<none>}}> : (f32, f32) -> f32 {LOC}
  "scf.yield"(%w) : (f32) -> () {LOC}
}}, {{
  "scf.yield"(%v) : (f32) -> () {LOC}
}}) : (i1) -> f32 {LOC}
%l = "scf.for"(%c, %n, %c, %r) ({{
^bb0(%i: i32 {LOC}, %a: f32 {LOC}):
  "scf.yield"(%a) : (f32) -> () {LOC}
}}) : (i32, i32, i32, f32) -> f32 {LOC}
"tt.store"(%q, %l) : (!tt.ptr<f32>, f32) -> () {LOC}
"""

CHANGES = [
    ("an unknown operation", '"arith.addi"', '"arith.addx"', "arith.addx is not known here yet"),
    (
        "an unknown attribute",
        "{isVolatile",
        "{swizzle = 1 : i32, isVolatile",
        "swizzle of tt.load is not known here yet",
    ),
    ("an unknown flag", "fastmath<none>", "fastmath<fast>", "is not known here yet"),
    (
        "an unknown type",
        "-> f32 loc(unknown)\n    %b",
        "-> f4 loc(unknown)\n    %b",
        "the type 'f4' is not known here yet",
    ),
    ("a missing attribute", "isVolatile = false, ", "", "tt.load without its attribute isVolatile"),
    ("an attribute of another type", "predicate = 2 : i64", 'predicate = "2"', "predicate = '2' is not known here yet"),
    ("an attribute given twice", "predicate = 2", "predicate = 1 : i64, predicate = 2", "predicate is given twice"),
    ("parts that do not add up", "i32: 1, 0, 0", "i32: 1, 1, 0", "parts of"),
    ("a value used too early", "(%n, %c) <{o", "(%n, %q) <{o", "%q is used before it is defined"),
    ("a value of another region", '"tt.store"(%q, %l)', '"tt.store"(%q, %w)', "%w is used before it is defined"),
    ("a value of the loop", '"tt.store"(%q, %l)', '"tt.store"(%q, %a)', "%a is used before it is defined"),
    ("its own result", '%r = "scf.if"(%b)', '%r = "scf.if"(%r)', "%r is used before it is defined"),
    ("a value defined twice", "%s = ", "%c = ", "%c is defined twice"),
    ("a value defined inside again", "%w = ", "%v = ", "%v is defined twice"),
    ("an operand of another type", ": (i32, i32) -> i32", ": (i64, i64) -> i64", "operands of other types"),
    ("too few operands", "(%n, %c) <{o", "(%n) <{o", "operands of other types"),
    (
        "another end of a block",
        '"scf.yield"(%w) : (f32)',
        '"tt.reduce.return"(%w) : (f32)',
        "a block of scf.if ends with",
    ),
    ("no end of a block", '  "scf.yield"(%w) : (f32) -> () loc(unknown)\n', "", "a block ends without a terminator"),
    (
        "an operation after the end",
        "    }, {",
        '    "gpu.barrier"() : () -> () loc(unknown)\n    }, {',
        "after the end",
    ),
    ("another result of the function", "i32) -> (), sym_name", "i32) -> f32, sym_name", "returns something else"),
    ("another parameter", "<f32>, i32) -> (), sym_name", "<f32>, i64) -> (), sym_name", "other parameters"),
    (
        "a second return",
        '"tt.return"() : () -> () loc(unknown)\n',
        '"tt.return"() : () -> () loc(unknown)\n' * 2,
        "after the end",
    ),
    ("a private kernel", '"public"', '"private"', "one public function"),
    ("a location that is not defined", "loc(unknown)\n    %b", "loc(#loc9)\n    %b", "#loc9 is not defined"),
    ("a location that never ends", "loc(unknown)\n    %b", "loc(unknown\n    %b", "a location that does not end"),
    ("a number too large", "value = 3 : i32", "value = 3000000000000 : i32", "does not fit i32"),
    ("a float for an integer", "value = 3 : i32", "value = 3.5 : i32", "3.5 as a value of i32"),
    ("a word for a number", "value = 3 : i32", "value = three : i32", "cannot be read"),
    (
        "a huge tensor",
        "!tt.ptr<f32>, i32) -> !tt.ptr<f32>",
        "!tt.ptr<f32>, i32) -> tensor<2097152xf32>",
        "more than 1048576",
    ),
    (
        "21 dimensions",
        "!tt.ptr<f32>, i32) -> !tt.ptr<f32>",
        "!tt.ptr<f32>, i32) -> tensor<1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1xf32>",
        "20 dimensions",
    ),
    ("an empty dimension", "!tt.ptr<f32>, i32) -> !tt.ptr<f32>", "!tt.ptr<f32>, i32) -> tensor<0xf32>", "is not known"),
    (
        "an unfinished line",
        '"arith.cmpi"(%n, %c) <{predicate = 2 : i64}> : (i32, i32) -> i1 loc(unknown)',
        '"arith.cmpi"(',
        "cannot be read",
    ),
]


def test_the_text_that_is_changed_below_is_good():
    module = parse(kernel(GOOD), "file.py")
    assert [operation.name for operation in module.entry.blocks[0].operations][-2:] == ["tt.store", "tt.return"]


@pytest.mark.parametrize(
    ("old", "new", "said"), [change[1:] for change in CHANGES], ids=[change[0] for change in CHANGES]
)
def test_a_change_is_refused(old, new, said):
    text = kernel(GOOD)
    assert old in text
    changed = text.replace(old, new, 1)
    with pytest.raises(BadText) as refused:
        parse(changed, "file.py")
    assert said in str(refused.value), refused.value


def test_the_sentence_names_the_line():
    text = kernel(GOOD).replace('"arith.addi"', '"arith.addx"')
    number = next(n for n, line in enumerate(text.splitlines(), 1) if "addx" in line)
    with pytest.raises(BadText, match=f"line {number} of the text"):
        parse(text, "file.py")


CROSSED = f"""
%c = "arith.cmpi"(%n, %n) <{{predicate = 2 : i64}}> : (i32, i32) -> i1 {LOC}
"cf.cond_br"(%c)[^bb1, ^bb2] <{{operandSegmentSizes = array<i32: 1, 0, 0>}}> : (i1) -> () {LOC}
^bb1:  // pred: ^bb0
%x = "arith.addi"(%n, %n) <{{overflowFlags = #arith.overflow<none>}}> : (i32, i32) -> i32 {LOC}
"cf.br"(%x)[^bb3] : (i32) -> () {LOC}
^bb2:  // pred: ^bb0
"cf.br"(%n)[^bb3] : (i32) -> () {LOC}
^bb3(%y: i32 {LOC}):  // 2 preds: ^bb1, ^bb2
%z = "arith.addi"(%y, %n) <{{overflowFlags = #arith.overflow<none>}}> : (i32, i32) -> i32 {LOC}
"""


def test_blocks_that_join():
    blocks = parse(kernel(CROSSED), "file.py").entry.blocks
    assert [[successor.block for successor in block.operations[-1].successors] for block in blocks] == [
        [1, 2],
        [3],
        [3],
        [],
    ]
    assert blocks[3].arguments == blocks[3].operations[0].operands[:1]


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("[^bb3] : (i32)", "[^bb4] : (i32)", "leads to ^bb4"),
        ("[^bb3] : (i32)", "[^bb0] : (i32)", "leads to ^bb0"),
        ("[^bb3] : (i32)", " : (i32)", "cannot be read"),
        ("(%x)[^bb3] : (i32)", "(%c)[^bb3] : (i1)", "gives ^bb3 other values"),
        ("[^bb1, ^bb2]", "[^bb1]", "with 1 successors"),
        ("^bb2:", "^bb1:", "given twice"),
    ],
)  # fmt: skip
def test_blocks_that_do_not_fit(old, new, said):
    assert old in kernel(CROSSED)
    with pytest.raises(BadText) as refused:
        parse(kernel(CROSSED).replace(old, new, 1), "file.py")
    assert said in str(refused.value)


def private(name: str, callee: str) -> str:
    return f"""\
  "tt.func"() <{{function_type = () -> (), sym_name = "{name}", sym_visibility = "private"}}> ({{
    "tt.call"() <{{callee = @{callee}}}> : () -> () {LOC}
    "tt.return"() : () -> () {LOC}
  }}) {{noinline = true}} : () -> () {LOC}
"""


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (private("f", "f"), "call themselves"),
        (private("f", "g") + private("g", "f"), "call themselves"),
        (private("f", "h"), "a call of 'h'"),
        (private("f", "k"), "a call of 'k'"),
        (private("k", "f"), "defined twice"),
        ("".join(private(f"f{n}", f"f{n + 1}") for n in range(60)), "a call of 'f60'"),
    ],
)  # fmt: skip
def test_calls_that_lead_nowhere_or_back(more, said):
    with pytest.raises(BadText) as refused:
        parse(kernel("", more=more), "file.py")
    assert said in str(refused.value)


def damaged(text: str, chance: random.Random) -> str:
    """A character, a piece or a line of the text lost, doubled, moved or replaced."""
    at, length = chance.randrange(len(text)), chance.choice((1, 1, 3, 20))
    piece = text[at : at + length]
    other = chance.randrange(len(text))
    kind = chance.randrange(6)
    if kind == 0:
        return text[:at] + text[at + length :]
    if kind == 1:
        return text[:at] + piece + text[at:]
    if kind == 2:
        return text[:other] + piece + text[other:]
    if kind == 3:
        return text[:at] + chance.choice('"\\{}()<>[]%#^@,:0x9\x00\r é\ud800') + text[at + 1 :]
    lines = text.split("\n")
    row, target = chance.randrange(len(lines)), chance.randrange(len(lines))
    if kind == 4:
        lines.insert(target, lines.pop(row))
    else:
        lines[row] = lines[target]
    return "\n".join(lines)


def test_damaged_texts_are_read_or_refused(texts):
    """No other exception, and much of what is damaged is noticed."""
    chance = random.Random(7)
    refused = 0
    names = sorted(texts)
    for number in range(600):
        text = damaged(texts[names[number % len(names)]], chance)
        try:
            parse(text, "kernels.py")
        except BadText:
            refused += 1
    assert refused > 200


def test_cut_texts_are_refused(texts):
    chance = random.Random(8)
    for text in texts.values():
        end = text.rindex("\n}) : ")
        for _ in range(5):
            with pytest.raises(BadText):
                parse(text[: chance.randrange(end)], "kernels.py")


def filled(start: str, piece: str, end: str = "") -> str:
    return start + piece * ((MOST_TEXT - len(start) - len(end)) // len(piece)) + end


HEAD = kernel("", more="").split('    "tt.return"')[0]
ENDLESS = {
    "regions": filled(HEAD, '"scf.if"(%n) ({\n'),
    "regions of one": filled(HEAD + '"scf.if"(%n) ({\n', "}, {\n"),
    "modules": filled("", '"builtin.module"() ({\n'),
    "functions": filled('"builtin.module"() ({\n', private("f", "f")),
    "labels": filled(HEAD, "^bb1:\n"),
    "parentheses": filled(HEAD + "    ", "("),
    "quotes": filled(HEAD + '    "', '\\"'),
    "quoted lines": filled(HEAD, '"\n'),
    "results": filled(HEAD + "    %a", ", %a:9999"),
    "operands": filled(HEAD + '    "tt.return"(%n', ", %n"),
    "attributes": filled(HEAD + '    "tt.return"() <{', "a = [", "}>"),
    "lists": filled(HEAD, '    "tt.return"() <{a = [[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[]}> : () -> () loc(unknown)\n'),
    "angles": filled(HEAD, '    "tt.return"() <{a = #b<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<}> : () -> () loc(unknown)\n'),
    "constants": filled(HEAD + '%z = "arith.constant"() <{value = dense<[0', ", 0", "]> : tensor<8xi32>}>"),
    "types": filled(HEAD + '"tt.return"() : (', "tensor<"),
    "definitions": filled("", "#a = 1\n"),
    "lines": filled("", "\n"),
    "blanks": filled("", " "),
    "zeros": filled("", "\x00"),
    "arguments": filled('"builtin.module"() ({\n"tt.func"() ({\n^bb0(', "%a: i32 loc(unknown), "),
    "locations": filled(HEAD + "    %a = \"tt.x\"() : () -> i32 loc(", '"a"('),
    "nothing": "",
    "too much": "\n" * (MOST_TEXT + 1),
}  # fmt: skip


@pytest.mark.parametrize("text", ENDLESS.values(), ids=list(ENDLESS))
def test_endless_text_is_refused_soon(text):
    began = time.process_time()
    with pytest.raises(BadText):
        parse(text, "file.py")
    assert time.process_time() - began < LONGEST


def test_many_operations_are_refused_soon():
    began = time.process_time()
    with pytest.raises(BadText, match="more than 200000 operations"):
        parse(filled(HEAD, '"gpu.barrier"() : () -> () loc(unknown)\n'), "file.py")
    assert time.process_time() - began < LONGEST


def locations(count: int, between: int) -> str:
    """Locations that refer to one another, `between` first to last or last to first."""
    order = range(count) if between > 0 else range(count - 1, -1, -1)
    chain = "".join(f'#loc{n} = loc("a"(#loc{n + 1}))\n' for n in order)
    return chain + f"#loc{count} = loc(unknown)\n" + kernel('"gpu.barrier"() : () -> () loc(#loc0)')


def test_locations_in_locations():
    assert parse(locations(30, 1), "file.py").entry.blocks[0].operations[0].place.variable == "a"
    for order in (1, -1):
        with pytest.raises(BadText, match="locations in locations"):
            parse(locations(100_000, order), "file.py")


def test_locations_that_double():
    """Each of them holds the one before twice: 2**60 frames, read in no time."""
    doubling = "".join(f"#loc{n} = loc(callsite(#loc{n + 1} at #loc{n + 1}))\n" for n in range(60))
    text = doubling + '#loc60 = loc("/a/file.py":7:1)\n' + kernel('"gpu.barrier"() : () -> () loc(#loc0)')
    assert parse(text, "file.py").entry.blocks[0].operations[0].place.line == 7


def test_a_location_in_itself():
    with pytest.raises(BadText, match="locations in locations"):
        parse('#loc0 = loc("a"(#loc0))\n' + kernel('"gpu.barrier"() : () -> () loc(#loc0)'), "file.py")


def test_regions_up_to_the_limit():
    def nested(depth: int) -> str:
        opening = '"scf.if"(%c) ({\n' * depth
        closing = f'"scf.yield"() : () -> () {LOC}\n}}, {{\n}}) : (i1) -> () {LOC}\n' * depth
        compare = f'%c = "arith.cmpi"(%n, %n) <{{predicate = 2 : i64}}> : (i32, i32) -> i1 {LOC}\n'
        return kernel(compare + opening + closing)

    assert sum(1 for _ in parse(nested(30), "file.py").entry.walk()) == 62
    with pytest.raises(BadText, match="regions in regions"):
        parse(nested(31), "file.py")
