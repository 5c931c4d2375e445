"""What the tests of pictures look for in them: elements, places, colours, and how well a text is seen on a colour."""

from __future__ import annotations

import colorsys
import re
import xml.etree.ElementTree as ET
from collections.abc import Iterator

SVG = "{http://www.w3.org/2000/svg}"
READABLE = 4.5  # the least contrast of small text, as WCAG 2 states it
SEEN = 3.0  # the least contrast of lines that mean something
HOSTILE = '<script>alert(1)</script> & "quoted" \' end'


def parsed(svg: str) -> ET.Element:
    """Returns the picture as an XML parser reads it, which refuses what is not well formed."""
    root = ET.fromstring(svg)
    assert root.tag == f"{SVG}svg"
    return root


def texts(root: ET.Element) -> list[str]:
    return [text for found in root.iter(f"{SVG}text") if (text := "".join(found.itertext()).strip())]


def boxes(root: ET.Element) -> list[tuple[float, float, float, float]]:
    """Returns the rectangles as x, y, width and height."""
    return [tuple(float(rect.get(name, "0")) for name in ("x", "y", "width", "height"))
            for rect in root.iter(f"{SVG}rect")]  # fmt: skip


def overlap(boxes: list[tuple[float, float, float, float]]) -> bool:
    return any(
        a[0] < b[0] + b[2] and b[0] < a[0] + a[2] and a[1] < b[1] + b[3] and b[1] < a[1] + a[3]
        for place, a in enumerate(boxes)
        for b in boxes[:place]
    )


def asks_for_nothing(svg: str) -> bool:
    """Returns whether a picture has no script and no address but those of its own parts and of XML's names."""
    addresses = re.findall(r"""(?:href="|url\(|src=")([^")]*)""", svg)
    return "<script" not in svg and "@import" not in svg and all(one.startswith("#") for one in addresses)


def contrast(one: str, other: str) -> float:
    """Returns the contrast of two colours as WCAG 2 defines it: "#1d2330", or "hsl(210 60% 86%)"."""
    low, high = sorted((_luminance(one), _luminance(other)))
    return (high + 0.05) / (low + 0.05)


def _luminance(colour: str) -> float:
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in _channels(colour)]
    return sum(weight * c for weight, c in zip((0.2126, 0.7152, 0.0722), linear))


def _channels(colour: str) -> Iterator[float]:
    if colour.startswith("#"):
        return (int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5))
    hue, saturation, lightness = map(int, re.findall(r"\d+", colour))
    return iter(colorsys.hls_to_rgb(hue / 360, lightness / 100, saturation / 100))
