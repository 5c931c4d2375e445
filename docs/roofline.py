"""Makes exercises/00_memory/roofline.svg and prints its figures: python docs/roofline.py

The seconds are those of each exercise's solution in solutions/NN_name/ladder.json, measured on a GPU; so are the two
roofs, a plain copy and cuBLAS. The operations and bytes of the call that is timed are counted below, by hand.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from math import log10
from pathlib import Path
from statistics import median

from grader.course.code_digest import digest_of_code

ROOT = Path(__file__).resolve().parent.parent
PICTURE = ROOT / "exercises" / "00_memory" / "roofline.svg"
FIGURES = {path.parent.name[:2]: json.loads(path.read_text()) for path in ROOT.glob("solutions/*/ladder.json")}
GPU = "NVIDIA H200"  # of the roofs
FP32_RATE = 67e12  # multiply-adds in fp32 without tensor cores; data sheet of the H200 SXM


@dataclass(frozen=True)
class Work:
    """The work of a timed call: operations of its formula, and bytes that have to be read or written once."""

    flops: int
    bytes: int


def _product(size: int, more: int = 0) -> Work:
    return Work(2 * size**3 + more, 3 * 2 * size**2)


# An addition, a product, a comparison, an exponential and a division are one operation each.
WORK = {
    "01": Work(2**27, 3 * 4 * 2**27),
    "02": Work(0, 2 * 4 * 8192**2),
    "03": Work(5 * 32768 * 4096, 2 * 4 * 32768 * 4096),  # maximum, subtract, exp, sum, divide
    "04": Work(0, 2 * 4 * 8192**2),
    "05": _product(4096),
    "06": Work(2 * 16384**2, 4 * (16384**2 + 2 * 16384)),  # multiply, compare with 0
    "07": Work(4096 * 65536, 4 * (4096 * 65536 + 4096)),
    "08": Work(12 * 2048 * 14336, 6 * 4 * 2048 * 14336),  # sigmoid 4, silu, z, dup, and 5 for the slope and dgate
    "09": Work(7 * 16384 * 8192, 2 * 4 * 16384 * 8192),  # two sums, subtract, square, times rstd and weight, plus bias
    "10": Work(5 * 16384 * 4096, 4 * 4 * 16384 * 4096),  # add, square, sum, times rstd and weight
    "11": Work(3 * 4 * 32 * 4096 * 128, 2 * 4 * 4 * 32 * 4096 * 128),  # four products and two sums for two elements
    "12": Work(0, 2 * 2 * 262144 * 1024),
    "13": Work(5 * 1024 * 131072, 2 * 4 * 1024 * 131072),  # as 03
    "14": Work(5 * 2**26, 2 * 4 * 2**26),  # as 03
    "17": Work(16384 * 8192, 2 * 4 * 16384 * 8192),
    "18": Work(7 * 8192 * 128256, 2 * 2 * 8192 * 128256),  # as 03; minus 1 at the target, times dloss
    "19": _product(4096, 3 * 4096**2),  # bias; leaky relu, a comparison and a product
    "22": Work(2 * 8192**2 * 512, 2 * (2 * 8192 * 512 + 8192**2)),
    "23": _product(4096),
    "25": Work(4 * 64 * 4096**2 * 64, 4 * 2 * 64 * 4096 * 64),  # two products; q, k, v and o
    "26": Work(2 * 16 * 8192 * 8193 * 128, 4 * 2 * 16 * 8192 * 128),  # two products of the pairs that are seen
    "27": Work(10 * 64 * 4096**2 * 64, 8 * 2 * 64 * 4096 * 64),  # five products; q, k, v, o, do and three gradients
    "28": Work(4 * 130982 * 32 * 128, 2 * 2 * 130982 * 8 * 128),  # keys of all sequences; k and v
    "31": Work(2 * 4096 * 2048 * 32768 + 5 * 4096 * 32768, 2 * 2048 * (4096 + 32768)),  # a product; each logit as 03
    "39": Work(0, 4 * 2 * 65536 * 8 * 128),  # k and v, read and written
}


def seconds_of(number: str) -> float:
    """The time of the solution, which is a rung of its ladder."""
    (folder,) = ROOT.glob(f"solutions/{number}_*")
    digest = digest_of_code((folder / f"{folder.name[3:]}.py").read_text(encoding="utf-8"))
    rungs = FIGURES[number]["rungs"].values()
    return next(rung["seconds"] for rung in rungs if rung["digest"] == digest)


def roof(anchor: str) -> float:
    """Returns bytes or operations per second of a copy or of cuBLAS on the H200: the median over its ladders."""
    rates = {"GB/s": 1e9, "TFLOP/s": 1e12}
    on_gpu = [one for one in FIGURES.values() if one["gpu"] == GPU]
    return median(one["rate"] * rates[one["unit"]] for one in on_gpu if one["anchor"] == anchor)


# ---- the picture ----------------------------------------------------------------------------------------------------

LEFT, RIGHT, TOP, BOTTOM = 150, 696, 62, 402
LEAST_X, LEAST_Y = 0.05, 0.1e12
X_DECADE, Y_DECADE = 107, 79
COPIES_X, COPIES_Y = 34, 168
# Numbers that share a label, and where it stands, seen from the first dot: lines lead there.
LABELS = {
    ("01",): (-10, -20), ("07",): (-24, -22), ("10",): (-20, -38), ("11",): (-8, -52), ("06",): (-1, -66),
    ("03",): (30, 4), ("09",): (-2, -56), ("08",): (14, 26), ("13", "14"): (40, 22), ("17",): (16, 30),
    ("22",): (-26, 12), ("05", "19", "23"): (-62, 44), ("25", "26"): (-8, 33),
    ("27",): (18, 26), ("28",): (24, 20), ("31",): (8, 27), ("18",): (14, 18),
}  # fmt: skip
STYLE = """\
    text { font-family: system-ui, "Helvetica Neue", Arial, "DejaVu Sans", sans-serif; font-size: 13px; fill: #1d2330; }
    .head { font-size: 15px; font-weight: bold; }
    .small { font-size: 12px; }
    .mid { text-anchor: middle; }
    .right { text-anchor: end; }
    .bold { font-weight: bold; }
    .soft { fill: #565e6c; }
    .paper { fill: #fcfbf8; stroke: #8d949e; }
    .plot { fill: #ffffff; stroke: #a4abb5; }
    .grid { stroke: #e3e4e6; }
    .roof { fill: none; stroke: #1d2330; stroke-width: 2.4; }
    .low { fill: none; stroke: #a8660e; stroke-width: 1.6; stroke-dasharray: 6 4; }
    .lead { stroke: #8d949e; stroke-width: 1; }
    .a { fill: #2a6aa8; stroke: #ffffff; }
    .b { fill: #a8660e; stroke: #ffffff; }
    @media (prefers-color-scheme: dark) {
      text { fill: #e8e6e0; }
      .soft { fill: #aab1bc; }
      .paper { fill: #1b1f27; stroke: #59616d; }
      .plot { fill: #232832; stroke: #68707c; }
      .grid { stroke: #323844; }
      .roof { stroke: #e8e6e0; }
      .low { stroke: #e3a950; }
      .lead { stroke: #59616d; }
      .a { fill: #6fb0ee; stroke: #232832; }
      .b { fill: #e3a950; stroke: #232832; }
    }"""


def x_of(intensity: float) -> float:
    return LEFT + X_DECADE * log10(intensity / LEAST_X)


def y_of(rate: float) -> float:
    return BOTTOM - Y_DECADE * log10(rate / LEAST_Y)


def _text(words: str, x: float, y: float, kind: str) -> str:
    return f'  <text class="{kind}" x="{x:.1f}" y="{y:.1f}">{words}</text>'


def _grid() -> list[str]:
    parts = [f'  <rect class="plot" x="{LEFT}" y="{TOP}" width="{RIGHT - LEFT}" height="{BOTTOM - TOP}" />']
    for tick in (0.1, 1, 10, 100, 1000):
        x = x_of(tick)
        parts.append(f'  <line class="grid" x1="{x:.1f}" y1="{TOP}" x2="{x:.1f}" y2="{BOTTOM}" />')
        parts.append(_text(f"{tick:g}", x, BOTTOM + 18, "small mid"))
    for tick in (0.1, 1, 10, 100, 1000):
        y = y_of(tick * 1e12)
        parts.append(f'  <line class="grid" x1="{LEFT}" y1="{y:.1f}" x2="{RIGHT}" y2="{y:.1f}" />')
        parts.append(_text(f"{tick:g}", LEFT - 8, y + 4, "small right"))
    parts.append(_text("operations per byte", (LEFT + RIGHT) / 2, BOTTOM + 38, "mid"))
    parts.append(_text("TFLOP/s", LEFT, TOP - 8, "mid"))
    return parts


def _roofs() -> list[str]:
    copy, product = roof("copy"), roof("cuBLAS")
    ridge = product / copy
    points = f"{LEFT},{y_of(LEAST_X * copy):.1f} {x_of(ridge):.1f},{y_of(product):.1f} {RIGHT},{y_of(product):.1f}"
    low_y, slope_x, slope_y = y_of(FP32_RATE), x_of(7.5), y_of(7.5 * copy)
    return [
        f'  <polyline class="roof" points="{points}" />',
        f'  <line class="low" x1="{x_of(FP32_RATE / copy):.1f}" y1="{low_y:.1f}" x2="{RIGHT}" y2="{low_y:.1f}" />',
        f'  <text class="small mid" transform="translate({slope_x:.1f} {slope_y - 9:.1f}) rotate(-36.4)">memory:'
        f" {copy / 1e12:.2f} TB/s (a copy)</text>",
        _text(f"tensor cores: {product / 1e12:.0f} TFLOP/s (cuBLAS)", RIGHT - 6, y_of(product) - 8, "small right"),
        _text(f"without them: {FP32_RATE / 1e12:.0f} (data sheet)", RIGHT - 6, low_y + 17, "small right"),
        f'  <line class="lead" x1="{x_of(ridge):.1f}" y1="{y_of(product):.1f}" x2="{x_of(ridge):.1f}" y2="{BOTTOM}" />',
        _text(f"{ridge:.0f}: the ridge", x_of(ridge) + 5, BOTTOM - 8, "small"),
    ]


def _intensity(number: str) -> float:
    return WORK[number].flops / WORK[number].bytes


def _dots() -> list[str]:
    dots, leads, names = [], [], []
    for numbers, (right, down) in LABELS.items():
        places = [(x_of(_intensity(number)), y_of(WORK[number].flops / seconds_of(number))) for number in numbers]
        end_x, end_y = places[0][0] + right, places[0][1] + down
        kind = "b" if _intensity(numbers[0]) > roof("cuBLAS") / roof("copy") else "a"
        for x, y in places:
            dots.append(f'  <circle class="{kind}" cx="{x:.1f}" cy="{y:.1f}" r="4.5" />')
            leads.append(f'  <line class="lead" x1="{x:.1f}" y1="{y:.1f}" x2="{end_x:.1f}" y2="{end_y:.1f}" />')
        names.append(_text(", ".join(numbers), end_x, end_y + (13 if down > 0 else -4), "small bold mid"))
    return leads + dots + names


def _copies() -> list[str]:
    parts = [
        _text(words, 24, COPIES_Y - 54 + 16 * line, "small")
        for line, words in enumerate(("No operations:", "speed against", "a plain copy"))
    ]
    for place, number in enumerate(number for number, work in WORK.items() if not work.flops):
        share = WORK[number].bytes / seconds_of(number) / FIGURES[number]["rate"] / 1e9
        y = COPIES_Y + 22 * place
        parts.append(f'  <circle class="a" cx="{COPIES_X}" cy="{y}" r="4.5" />')
        parts.append(_text(number, COPIES_X + 12, y + 4, "small bold"))
        parts.append(_text(f"{share:.0%}".replace("%", " %"), COPIES_X + 38, y + 4, "small"))
    return parts


def picture() -> str:
    """The picture as SVG, on paper of its own, so that it can be read on a dark page too."""
    lines = [
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 720 456" width="720" height="456"',
        '  role="img" aria-labelledby="titleroof descroof">',
        '  <title id="titleroof">A roofline of one H200, with a dot for each exercise</title>',
        '  <desc id="descroof">',
        "    To the right: operations per byte. Upwards: operations per second. The roof rises with the speed of",
        f"    memory up to {roof('cuBLAS') / roof('copy'):.0f} operations per byte, and is flat from there.",
        "    Products and attention of many queries lie under the flat part, all others on the rising one or below it.",
        "    Copies have no operations: they stand on the left, with their speed against a plain copy.",
        "  </desc>",
        f"  <style>\n{STYLE}\n  </style>",
        '  <rect class="paper" x="0.5" y="0.5" width="719" height="455" rx="8" />',
        _text("One H200, and the solution of each exercise", 24, 30, "head"),
        *_grid(), *_roofs(), *_dots(), *_copies(), "</svg>",
    ]  # fmt: skip
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    PICTURE.write_text(picture(), encoding="utf-8")
    for number, work in WORK.items():
        done, moved = work.flops / seconds_of(number) / 1e12, work.bytes / seconds_of(number) / 1e12
        print(f"{number} {work.flops / work.bytes:9.3f} operations per byte {done:8.2f} TFLOP/s {moved:5.2f} TB/s")
    print(f"{PICTURE.relative_to(ROOT)}: roofs {roof('copy') / 1e12:.2f} TB/s, {roof('cuBLAS') / 1e12:.0f} TFLOP/s")
