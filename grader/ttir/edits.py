"""Edits of a kernel's text: one operation, one of its operands or its number changed, or one operation more or less.

A kernel with one mistake becomes right with one edit, as a rule, so that the edits that make it right tell where the
mistake is. Texts of one kernel for calls of other sizes have the same edits, by the same keys.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain, combinations, product

from grader.ttir.editable import SPREADS, Change, Editable, Site, Value
from grader.ttir.written import instead, number, written

OF_FLOATS = ("arith.addf", "arith.subf", "arith.mulf", "arith.divf")
REMAINDER = "arith.remf"  # of floats: what no kernel means
OF_NUMBERS = ("arith.addi", "arith.subi", "arith.muli", "arith.divsi", "arith.remsi")
LARGEST = (("arith.maxnumf", "arith.minnumf"), ("arith.maxsi", "arith.minsi"))
OF_THE_GRID = ("tt.get_program_id", "tt.get_num_programs")
FUNCTIONS = (
    ("math.exp", "math.exp2", "math.log", "math.log2"), ("math.sqrt", "math.rsqrt"), ("math.sin", "math.cos"),
)  # fmt: skip
FAMILIES = (OF_FLOATS, OF_NUMBERS, *LARGEST, ("arith.andi", "arith.ori"), OF_THE_GRID, *FUNCTIONS)
OF_FOLDS = ((*OF_FLOATS, *LARGEST[0]), (*OF_NUMBERS, *LARGEST[1]), ("arith.andi", "arith.ori"))
OF_RANGE = 3  # operands of a loop that its own line holds: start, end and step
PREDICATES = {"arith.cmpi": range(6), "arith.cmpf": range(1, 7)}  # of signed numbers; ordered
ORDERED = ("arith.subf", "arith.subi", "arith.divf", "arith.divsi", "arith.remsi", "arith.remf", "tt.dot")
MORE = {"f": ("arith.mulf", "arith.addf", "arith.subf", "arith.divf"), "i": ("arith.muli", "arith.addi", "arith.subi")}
# A sum, and what may have been meant inside of it: a product that became a sum is summed up in another order.
SUMS = {"i": (OF_NUMBERS[:2], OF_NUMBERS[2:]), "f": (OF_FLOATS[:2], OF_FLOATS[2:])}
# An operation more on the operand of these is one more on what they give.
HAND_ON = (*SPREADS, "scf.yield", "tt.reduce.return")
FLAGS = {"arith.addi": "overflowFlags = #arith.overflow<none>", "arith.addf": "fastmath = #arith.fastmath<none>"}
FLAGS |= dict.fromkeys(("arith.subi", "arith.muli"), FLAGS["arith.addi"])
FLAGS |= dict.fromkeys((*OF_FLOATS, REMAINDER, *LARGEST[0], *chain(*FUNCTIONS)), FLAGS["arith.addf"])
LIKELY, FAIR, RARE = 0, 1, 2  # how likely a mistake is that an edit takes back
LESS = 2  # predicate of arith.cmpi: below, signed
MOST_MASKS = 200  # of one access


@dataclass(frozen=True)
class Edit:
    """An edit of one operation, or the same edit of all operations that the same piece of the file has become.

    `key`: the same in texts of one kernel for other calls. `kind`: what is changed: comparison, axis, operation, order
    (of operands, or of operations), exchange (of two values in a line), number, mask, other, less (without it), value,
    more (an operation more). `words`: what it is. `is_idle`: it changes nothing in this call, and something in others.
    `rank`: of its level, 0 for what is most likely, and is to be tried first.
    """

    key: str
    kind: str
    words: str
    changes: tuple[Change, ...]
    line: int  # of the file; 0 where it may be that of a function, or that of a call of it
    is_idle: bool = False
    rank: int = RARE


def edits(text: Editable, level: int, groups: Iterable[str]) -> Iterator[Edit]:
    """Yields the edits of some groups of sites, in their order.

    `level`, below len(LEVELS): 0 for those that bring in no other value, 1 for other values, 2 for operations more:
    from level to level there are more of them.
    """
    for of in groups:
        alike = text.groups[of]
        if not alike[0].operation.place.line:  # no place of the learner's file
            continue
        if len(alike) > 1:
            yield from _of_all(text, level, of, alike)
        for site in alike:
            for edit in LEVELS[level](site, text):
                line = _line_of(edit.kind, site, alike)
                words = f"{edit.words} where elements are combined" if site.is_in_a_fold else edit.words
                key = f"{site.id} {edit.kind} {edit.detail}"
                yield Edit(key, edit.kind, words, (edit.change,), line, edit.is_idle, edit.rank)
        if level == 0:
            yield from _exchanges(text, alike)


def _of_all(text: Editable, level: int, of: str, alike: list[Site]) -> Iterator[Edit]:
    """Yields the edits that each site of a group has, made in all of them at once."""
    if alike[0].is_read_again:
        return
    edits_by_site = [{(edit.kind, edit.detail): edit for edit in LEVELS[level](site, text)} for site in alike]
    for (kind, detail), first in edits_by_site[0].items():
        changes = [by_name[kind, detail].change for by_name in edits_by_site if (kind, detail) in by_name]
        if len(changes) == len(alike) and not any(change.renamed for change in changes):
            line = alike[0].operation.place.line
            yield Edit(f"{of}#all {kind} {detail}", kind, first.words, tuple(changes), line, rank=first.rank)


def _exchanges(text: Editable, alike: list[Site]) -> Iterator[Edit]:
    """Yields the exchanges of two values that one line uses, with the first operation of the line: one name was written
    for the other, and the other for the one."""
    first = alike[0]
    in_line = text.lines_of_sites[first.operation.place.line, first.operation.place.via]
    if in_line[0] is not first or any(one.is_in_a_fold for one in in_line):
        return
    places: dict[str, list[Site]] = {}
    for site in in_line:
        for operand in site.operands if not site.is_read_again else ():
            places.setdefault(operand, []).append(site)
    known = {value.name: value for site in in_line for value in site.known if value.is_named}
    used = [known[name] for name in places if name in known and name not in text.constants]
    for one, other in combinations(used, 2):
        changed = {site.at: site for site in (*places[one.name], *places[other.name])}.values()
        if one.type == other.type and all(value in site.known for site in changed for value in (one, other)):
            new = {one.name: other.name, other.name: one.name}
            operands = ([new.get(operand, operand) for operand in site.operands] for site in changed)
            changes = tuple(Change(site, (_with_operands(site, its),)) for site, its in zip(changed, operands))
            words, line = f"`{one.written}` and `{other.written}` exchanged", _line_of("value", first, alike)
            key = f"{first.of}#line exchange {one.id} {other.id}"
            yield Edit(key, "exchange", words, changes, line, rank=LIKELY)


def _line_of(kind: str, site: Site, alike: list[Site]) -> int:
    """Returns the line of an edit of one site. What a function is given, and its one call of several that is wrong, may
    be the call's mistake."""
    place = site.operation.place
    if len({other.operation.place.via for other in alike}) > 1:
        return place.via[0] if place.via else place.line
    return 0 if place.via and kind in ("value", "number") else place.line


@dataclass(frozen=True)
class _One:
    kind: str
    detail: str
    words: str
    change: Change
    is_idle: bool = False
    rank: int = RARE


def _one(
    site: Site, kind: str, detail: object, words: str, *lines: str, is_idle: bool = False, rank: int = RARE
) -> _One:
    return _One(kind, str(detail), words, Change(site, lines), is_idle, rank)


def _anew(site: Site, name: str = "", operands: Iterable[str] = (), **attributes: int) -> str:
    """Returns the words for the site's operation with another name, other operands, or another attribute."""
    old = site.operation.attributes
    new = written(name or site.name, [*operands] or site.written, {**old, **attributes})
    return instead(new, written(site.name, site.written, old))


# ---- level 0: nothing else is brought in -----------------------------------------------------------------------------


def _few(site: Site, text: Editable) -> Iterator[_One]:
    attributes = site.operation.attributes
    for predicate in PREDICATES.get(site.name, ()):
        if predicate != attributes["predicate"]:
            words, line = _anew(site, predicate=predicate), _with_number(site, "predicate", predicate)
            yield _one(site, "comparison", predicate, words, line, rank=LIKELY)
    if site.name in OF_THE_GRID or (site.name in ("tt.reduce", "tt.scan") and _is_square(site)):
        for axis in range(3 if site.name in OF_THE_GRID else 2):
            if axis != attributes["axis"]:
                words = _anew(site, axis=axis) if site.name in OF_THE_GRID else f"axis {axis}"
                yield _one(site, "axis", axis, words, _with_number(site, "axis", axis), rank=LIKELY)
    if len(site.operands) == 2 and not site.operation.regions:
        for at, operand in enumerate(site.operands):
            if site.types and site.types[at] == site.result_type:
                words = instead(site.written[at], written(site.name, site.written, attributes))
                yield _One("less", str(at), words, Change(site, (), operand))
    for family in OF_FOLDS if site.is_in_a_fold else FAMILIES:
        for other in family if site.name in family or site.name == REMAINDER and family is OF_FLOATS else ():
            if other != site.name:
                yield _one(site, "operation", other, _anew(site, other), _with_name(site, other), rank=FAIR)
    if site.name in ORDERED and site.types and site.types[0] == site.types[1]:
        words = _anew(site, operands=_exchanged(site.written))
        yield _one(site, "order", "", words, _with_operands(site, _exchanged(site.operands)), rank=LIKELY)
    yield from _other_sums(site, text)
    if site.name in ("tt.load", "tt.store"):
        yield from _masks(site)
    if site.name == "arith.constant" and site.operation.place.variable:
        yield from _other_constants(site, text)
    if not site.operation.regions or site.name == "scf.for":
        for at, (operand, type) in enumerate(_of_its_line(site)):
            yield from _numbers(site, at, operand, type, text)


def _of_its_line(site: Site) -> list[tuple[str, str]]:
    """Returns the operands that the site's line of the file holds, each with its type: what a variable is before a loop
    stands in another line than the loop's."""
    operands = list(zip(site.operands, site.types or ()))
    return operands[:OF_RANGE] if site.name == "scf.for" else operands


def _other_sums(site: Site, text: Editable) -> Iterator[_One]:
    """Yields `a + (b * c)` and its like for `(a + b) + c` or `(a * b) * c`, which one other sign in the file makes of
    it."""
    types, inner = site.types or [], text.makers.get(site.operands[0]) if len(site.operands) == 2 else None
    spread = inner if inner is not None and inner.name == "tt.splat" else None
    inner = inner if spread is None else text.makers.get(spread.operands[0])
    if inner is None or inner.operation.place.line != site.operation.place.line or len(inner.operands) != 2:
        return
    known, parts = {value.name: value for value in site.known}, inner.types or []
    if not known.keys() >= set(inner.operands) or parts[1:] != ([types[1]] if spread is None else spread.types):
        return
    wide, (first, second), third = types[1], inner.operands, site.operands[1]
    names: tuple[str, ...]
    names, others = SUMS["i" if _element(wide)[0] == "i" else "f"]
    if spread is None and site.name == inner.name == "tt.addptr":
        names = ("tt.addptr",)
    elif types[0] != wide or not {site.name, inner.name} <= {*names, *others}:
        return
    made = []
    if spread is not None:
        made = [_line(_new(at), "tt.splat", [one], parts[at : at + 1], wide) for at, one in enumerate(inner.operands)]
        first, second = _new(0), _new(1)
    for name, other in product(names, others):
        new = _line("%mend", other, [second, third], [wide, wide], wide, FLAGS.get(other, ""))
        whole = _line(site.result, name, [first, "%mend"], types, site.result_type, FLAGS.get(name, ""))
        term = written(other, [inner.written[1], site.written[1]], {})
        if name == inner.name:
            words = instead(term, written(site.name, [inner.written[1], site.written[1]], {}))
        else:
            words = instead(written(name, [inner.written[0], term], {}), written(site.name, site.written, {}))
        yield _one(site, "order", f"{name} {other}", words, *made, new, whole, rank=LIKELY)


def _exchanged(operands: list[str]) -> list[str]:
    return [*operands[1::-1], *operands[2:]]


def _is_square(site: Site) -> bool:
    sizes = _sizes((site.types or [""])[0])
    return len(sizes) == 2 and sizes[0] == sizes[1]


def _numbers(site: Site, at: int, operand: str, type: str, text: Editable) -> Iterator[_One]:
    """Yields other numbers in the place of a constant operand."""
    for what, other in _others(operand, type, text):
        made = _constant(_new(at), _as_text(other, _element(type)), type)
        yield _one(site, "number", f"{at} {what}", instead(number(other), site.written[at]), *_with_new(site, at, made))


def _others(name: str, type: str, text: Editable) -> Iterator[tuple[str, float]]:
    """Yields other numbers than a constant holds, by what they are: a number that stands for a block size is another
    one in another text."""
    held, element = text.constants.get(name), _element(type)
    if held is None or "!tt.ptr" in type or element == "i1":
        return
    if element[0] == "i":
        others = {"0": 0, "1": 1, "-1": -1, "less": held - 1, "more": held + 1, "twice": 2 * held}
    else:
        # Where several do, as 1 in the minimum of numbers up to 1, an infinity does for all numbers: it comes first.
        others = {"lowest": -math.inf, "highest": math.inf, "0": 0.0, "1": 1.0, "-1": -1.0}
    yield from ((what, other) for what, other in others.items() if other != held)


def _other_constants(site: Site, text: Editable) -> Iterator[_One]:
    """Yields other numbers for one that a variable is, or is made of, as before a loop that changes it."""
    held = text.constants.get(site.result, 0)
    for what, other in _others(site.result, site.result_type, text):
        line = _constant(site.result, _as_text(other, _element(site.result_type)), site.result_type)
        yield _one(site, "number", what, instead(number(other), number(held)), line, rank=FAIR)


def _masks(site: Site) -> Iterator[_One]:
    """Yields masks for an access without, and what masked lanes hold."""
    pointers, least = (site.types or [""])[0], 1 if site.name == "tt.load" else 2
    if not pointers.startswith("tensor"):
        return
    masks, offsets = _type_like(pointers, "i1"), _type_like(pointers, "i32")
    if len(site.operands) == least:
        sizes = [value for value in site.known if value.type == "i32"]
        blocks = [value for value in reversed(site.known) if value.type == offsets]
        for value in reversed(site.known):
            if value.type == masks:
                words = f"the mask `{value.written}`"
                yield _one(site, "mask", value.id, words, _with_mask(site, value.name, masks))
        for block, size in [(block, size) for block in blocks for size in sizes][:MOST_MASKS]:
            wide = _line("%mend_size", "tt.splat", [size.name], [size.type], offsets)
            below = _line(
                "%mend", "arith.cmpi", [block.name, "%mend_size"], [offsets] * 2, masks, f"predicate = {LESS} : i64"
            )
            words = f"the mask `{written('arith.cmpi', [block.written, size.written], {'predicate': LESS})}`"
            yield _one(site, "mask", f"{block.id} {size.id}", words, wide, below, _with_mask(site, "%mend", masks))
    if site.name == "tt.load" and len(site.operands) == 2:
        element = _element(site.result_type)
        for fill in (0, -1) if element[0] == "i" else (-math.inf, math.inf, 0.0):
            made, words = _constant("%mend", _as_text(fill, element), site.result_type), f"`other={number(fill)}`"
            yield _one(site, "other", fill, words, made, _with_segment(site, "%mend", site.result_type, (1, 1, 1)))


def _with_mask(site: Site, mask: str, type: str) -> str:
    return _with_segment(site, mask, type, (1, 1, 0))


# ---- level 1: other values -------------------------------------------------------------------------------------------


def _values(site: Site, text: Editable) -> Iterator[_One]:
    if site.operation.regions and site.name != "scf.for":
        return
    same = {value.name: value.same for value in site.known}
    for at, (operand, type) in enumerate(_of_its_line(site)):
        for value in _distinct(site):
            if value.type == type and value.same != same.get(operand, operand):
                is_idle = value.name in text.sizes and text.sizes[value.name] == text.constants.get(operand)
                words, line = instead(value.written, site.written[at]), _with_operand(site, at, value.name)
                rank = _rank(site, at, value, text)
                is_number = value.name in text.constants and value.name not in text.sizes
                kind = "number" if is_number else "value"
                yield _one(site, kind, f"{at} {value.id}", words, line, is_idle=is_idle, rank=rank)
        if type.startswith("tensor") and "!tt.ptr" not in type and not site.operation.regions:
            yield from _spread_values(site, at, type, text)


def _rank(site: Site, at: int, value: Value, text: Editable) -> int:
    is_unused = value.is_parameter and value.name not in text.sizes and not text.uses[value.name]
    if not is_unused and not text.is_mistakable(site, at, value):
        return RARE
    return FAIR if text.is_used_stride(value) else LIKELY


def _spread_values(site: Site, at: int, type: str, text: Editable) -> Iterator[_One]:
    """Yields numbers, rows and columns that the kernel knows, spread over the shape of an operand: in the place of a
    constant all of them, of a limit the parameters, else floats, and what is used nowhere."""
    sizes, element, held = _sizes(type), _element(type), text.constants.get(site.operands[at])
    is_limit = held is None and site.name == "arith.cmpi"
    maker = text.makers.get(site.operands[at])
    is_spread = maker is not None and maker.name == "tt.splat"  # whose own edits bring in numbers
    for value in (one for one in site.known if one.is_parameter) if is_limit else _distinct(site):
        rank, words = _rank(site, at, value, text), instead(value.written, site.written[at])
        if held is None and not (is_limit or rank == LIKELY and not text.uses[value.name] or element[0] == "f"):
            continue
        if value.type == element:
            made = _line(_new(at), "tt.splat", [value.name], [element], type)
            key, new, rank = f"{at} splat {value.id}", _with_new(site, at, made), RARE if is_spread else rank
            is_idle = held is not None and text.sizes.get(value.name) == held
            yield _one(site, "value", key, words, *new, is_idle=is_idle, rank=rank)
        for axis, size in enumerate(sizes if len(sizes) == 2 else ()):
            if value.type == f"tensor<{size}x{element}>":
                flat = [size, "1"] if axis == 0 else ["1", size]
                thin = f"tensor<{'x'.join([*flat, element])}>"
                wide = _line("%mend", "tt.expand_dims", [value.name], [value.type], thin, f"axis = {1 - axis} : i32")
                made = _line(_new(at), "tt.broadcast", ["%mend"], [thin], type)
                lines = wide, *_with_new(site, at, made)
                yield _one(site, "value", f"{at} {axis} {value.id}", words, *lines, rank=rank)


def _distinct(site: Site) -> Iterator[Value]:
    """Yields the known values with names, the latest first, each of those that are computed alike once."""
    seen = set()
    for value in reversed(site.known):
        if value.is_named and value.same not in seen:
            seen.add(value.same)
            yield value


# ---- level 2: an operation more --------------------------------------------------------------------------------------


def _more(site: Site, text: Editable) -> Iterator[_One]:
    if site.operation.regions or site.name in HAND_ON:
        return
    for at, (operand, type) in enumerate(zip(site.operands, site.types or ())):
        if at == 0 or site.name not in ("arith.mulf", "arith.muli"):  # a factor is one of both operands
            for value in _distinct(site):
                yield from _one_more(site, at, operand, type, value, text.sizes.get(value.name))


def _one_more(site: Site, at: int, operand: str, type: str, value: Value, size: int | None) -> Iterator[_One]:
    """Yields operations of an operand and a value: a sum, a product, an offset, another condition.

    `size`: that was compiled into the kernel as this value: a block's, or a stride of 1. It is a factor.
    """
    element = _element(type)

    def words(name: str) -> str:
        return instead(written(name, [site.written[at], value.written], {}), site.written[at])

    if "!tt.ptr" in type:
        if value.type == _type_like(type, "i32"):
            made = _line(_new(at), "tt.addptr", [operand, value.name], [type, value.type], type)
            yield _one(site, "more", f"{at} tt.addptr {value.id}", words("tt.addptr"), *_with_new(site, at, made))
        return
    names = ("arith.andi",) if element == "i1" else MORE["i" if element[0] == "i" else "f"]
    names = names if size is None else names[:1]
    if value.type == type:
        for name in names if value.name != operand else names[:2] if element != "i1" else ():
            made = _line(_new(at), name, [operand, value.name], [type] * 2, type, FLAGS.get(name, ""))
            key, new = f"{at} {name} {value.id}", _with_new(site, at, made)
            yield _one(site, "more", key, words(name), *new, is_idle=size == 1)
    elif value.is_parameter and value.type == element != "i1":
        wide = _line("%mend", "tt.splat", [value.name], [element], type)
        for name in names[:2]:
            made = _line(_new(at), name, [operand, "%mend"], [type] * 2, type, FLAGS.get(name, ""))
            lines = wide, *_with_new(site, at, made)
            yield _one(site, "more", f"{at} {name} splat {value.id}", words(name), *lines, is_idle=size == 1)


LEVELS = (_few, _values, _more)

# ---- lines of a text -------------------------------------------------------------------------------------------------


def _line(result: str, name: str, operands: list[str], types: list[str], type: str, attributes: str = "") -> str:
    attributes = f" <{{{attributes}}}>" if attributes else ""
    return f'    {result} = "{name}"({", ".join(operands)}){attributes} : ({", ".join(types)}) -> {type} loc(unknown)'


def _constant(result: str, value: str, type: str) -> str:
    held = f"dense<{value}> : {type}" if type.startswith("tensor") else f"{value} : {type}"
    return _line(result, "arith.constant", [], [], type, f"value = {held}")


def _new(at: int) -> str:
    """Returns the name of what stands for an operand."""
    return f"%mend_{at}"


def _with_new(site: Site, at: int, made: str) -> tuple[str, str]:
    return made, _with_operand(site, at, _new(at))


def _with_operand(site: Site, at: int, name: str) -> str:
    return _with_operands(site, [*site.operands[:at], name, *site.operands[at + 1 :]])


def _with_operands(site: Site, operands: list[str]) -> str:
    head, _, rest = site.line.partition('"(')
    return f'{head}"({", ".join(operands)}{rest[rest.index(")") :]}'


def _with_number(site: Site, attribute: str, number: int) -> str:
    return site.line.replace(f"{attribute} = {site.operation.attributes[attribute]} :", f"{attribute} = {number} :", 1)


def _with_name(site: Site, name: str) -> str:
    """Returns the line with another operation of the family, and the flags that this takes."""
    line = site.line.replace(f'"{site.name}"(', f'"{name}"(', 1)
    old, new = (f" <{{{FLAGS[operation]}}}>" if operation in FLAGS else "" for operation in (site.name, name))
    return line if old == new else line.replace(f"){old} :", f"){new} :", 1)


def _with_segment(site: Site, operand: str, type: str, segments: tuple[int, int, int]) -> str:
    """Returns the line of an access with one operand more, of a load with the sizes of its segments."""
    line = _with_operands(site, [*site.operands, operand])
    types = list(site.types or ())
    line = line.replace(f": ({', '.join(types)}) ->", f": ({', '.join([*types, type])}) ->")
    old = ", ".join(map(str, site.operation.attributes.get("operandSegmentSizes", ())))
    return line.replace(f"Sizes = array<i32: {old}>", f"Sizes = array<i32: {', '.join(map(str, segments))}>")


# ---- types -----------------------------------------------------------------------------------------------------------


def _sizes(type: str) -> list[str]:
    """Returns the sizes of a tensor, as the text writes them; [] for a number."""
    return type.removeprefix("tensor<").split("x")[:-1] if type.startswith("tensor") and "!tt.ptr" not in type else []


def _element(type: str) -> str:
    return type.removesuffix(">").rpartition("x")[2] if type.startswith("tensor") else type


def _type_like(pointers: str, element: str) -> str:
    """Returns the type with the shape of pointers and other elements."""
    head = pointers[: pointers.index("!tt.ptr")]
    return f"{head}{element}>" if head else element


def _as_text(value: float, element: str) -> str:
    """Returns a number as the text writes it: infinities by their bits."""
    if math.isinf(value):
        bits = {"f64": "7FF0000000000000", "f16": "7C00", "bf16": "7F80"}.get(element, "7F800000")
        return f"0x{bits if value > 0 else 'F' + bits[1:]}"
    return str(value) if element[0] == "i" else f"{value:e}"
