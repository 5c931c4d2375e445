"""The peak rates that NVIDIA states for its cards: memory bandwidth, and fp16 products on tensor cores.

Sources: the datasheets of T4, L4, L40S, A10, A100, H100, H200 and B200; for GeForce cards the pages of specifications
(bandwidth) and the papers on GA102, Ada and Blackwell RTX (products with fp32 sums, without sparsity). GPUs of laptops
are left out: they have the names of other cards but other memories, and NVIDIA states no bandwidth for them.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

ROOM_ABOVE_PEAK = 1.05
ROOM_OF_GEFORCE = 1.25  # a manufacturer of GeForce cards may raise their clocks


@dataclass(frozen=True)
class Card:
    """The peak rates of a card; infinite where NVIDIA states none."""

    bandwidth: float  # bytes per second
    flops: float  # of fp16 products with fp32 sums, per second
    room: float  # factor by which a rate may exceed the stated peak

    def is_impossible(self, bytes_per_second: float, flops: float) -> bool:
        """Returns whether the rates exceed what the card can do: then some work was not done, or not timed."""
        return bytes_per_second > self.room * self.bandwidth or flops > self.room * self.flops


def _cards(text: str) -> dict[str, Card]:
    """Reads a table of cards, a line for each: name as the driver reports it, GB/s, TFLOP/s (0: not stated).

    Returns the cards by name.
    """
    cards = {}
    for line in text.strip().splitlines():
        name, bandwidth, flops = line.rsplit(maxsplit=2)
        room = ROOM_OF_GEFORCE if "GeForce" in name else ROOM_ABOVE_PEAK
        cards[name.strip()] = Card(1e9 * float(bandwidth), 1e12 * (float(flops) or math.inf), room)
    return cards


CARDS = _cards(
    """
Tesla T4                      320   65
NVIDIA L4                     300  121
NVIDIA L40S                   864  362
NVIDIA A10                    600  125
NVIDIA A100-PCIE-40GB        1555  312
NVIDIA A100-SXM4-40GB        1555  312
NVIDIA A100 80GB PCIe        1935  312
NVIDIA A100-SXM4-80GB        2039  312
NVIDIA H100 PCIe             2000  756
NVIDIA H100 NVL              3938  835
NVIDIA H100 80GB HBM3        3350  989
NVIDIA H200                  4800  989
NVIDIA B200                  8000 2250
NVIDIA GeForce RTX 3060       360    0
NVIDIA GeForce RTX 3060 Ti    448    0
NVIDIA GeForce RTX 3070       448 40.6
NVIDIA GeForce RTX 3070 Ti    608    0
NVIDIA GeForce RTX 3080       760 59.5
NVIDIA GeForce RTX 3080 Ti    912    0
NVIDIA GeForce RTX 3090       936   71
NVIDIA GeForce RTX 3090 Ti   1008    0
NVIDIA GeForce RTX 4060       272    0
NVIDIA GeForce RTX 4060 Ti    288    0
NVIDIA GeForce RTX 4070       504    0
NVIDIA GeForce RTX 4070 Ti    504    0
NVIDIA GeForce RTX 4080       717 97.5
NVIDIA GeForce RTX 4090      1008  165
NVIDIA GeForce RTX 5060       448    0
NVIDIA GeForce RTX 5060 Ti    448    0
NVIDIA GeForce RTX 5070       672 61.7
NVIDIA GeForce RTX 5070 Ti    896 87.9
NVIDIA GeForce RTX 5080       960  113
NVIDIA GeForce RTX 5090      1792  210
"""
)


def card_named(name: str) -> Card | None:
    """Returns the card of a GPU with this name, as the driver reports it; None where its model is not known.

    A server card whose form is not in the table gets the form of its model with the highest bandwidth.
    """
    if name in CARDS:
        return CARDS[name]
    model = _server_model(name)
    forms = [card for other, card in CARDS.items() if model and _server_model(other) == model]
    return max(forms, key=lambda card: card.bandwidth, default=None)


def _server_model(name: str) -> str:
    """Returns "NVIDIA A100" for any form of that card; "" for a GeForce, whose forms differ too much."""
    model = re.match(r"NVIDIA (?!GeForce)\w+", name)
    return model[0] if model else ""
