"""A transformer in the manner of Llama, with random weights: it tells a story of words that mean nothing.

Nine of its steps are kernels of the course: `kernels.rope(...)` and so on. `PLAIN` has all nine in plain torch; with
others in their places the same model runs on kernels. One sequence is told at a time. All numbers are fp16, since 19,
26 and 28 promise it; the same weights in fp32 are the truth that a story is compared with.

Two things no Llama has: the up-projection has a bias and a leaky ReLU, because 19 computes them; and swiglu is that of
08, which makes the gradients too, and here nobody reads them.
"""

from dataclasses import dataclass
from types import SimpleNamespace

import torch
import torch.nn.functional as F

# Each kernel of the model, in the order in which a token meets them: its exercise, and the function there.
KERNELS = {
    "gather_rows": ("12", "gather_rows"),
    "add_rms_norm": ("10", "add_rms_norm"),
    "rope": ("11", "rope"),
    "kv_cache_write": ("39", "kv_cache_write"),
    "attention": ("26", "attention"),
    "paged_attention": ("28", "paged_attention"),
    "linear_leaky_relu": ("19", "linear_leaky_relu"),
    "swiglu": ("08", "swiglu_backward"),
    "cross_entropy": ("18", "cross_entropy"),
}

LOSS = "cross_entropy"  # the one that chooses no token

ALL_WORDS = """
once upon a time there was llama kernel that wanted to be fast it had one program and small block of memory every
night the warp slept in shared registers while two threads danced around mask but no lane knew where its row began so
they asked old pointer who said load me then add what you carry store sum wait for nobody between barrier loop tile
never ends under moon bank conflict cache river gave back lost bytes with stride until morning came . , all her his
"""
WORDS = ALL_WORDS.split()  # a token is the number of a word
OPENING = "once upon a time there was a llama that wanted to be fast ."
PROMPT = OPENING.split()

EPS = 1e-5
PAGE = 16  # rows of a page of the caches
PAGES = 16  # so prompt and story have at most 256 words


@dataclass(frozen=True)
class Size:
    """width = heads * length of a head. `heads` of the queries share `kv_heads` of the keys and values."""

    layers: int
    width: int
    heads: int
    kv_heads: int
    hidden: int

    @property
    def head(self) -> int:
        return self.width // self.heads


SMALL = Size(layers=2, width=64, heads=4, kv_heads=2, hidden=96)  # for a machine without a GPU
LARGE = Size(layers=8, width=1024, heads=16, kv_heads=4, hidden=2816)  # 90 million weights, 0.2 GB


def weights(size: Size, seed: int) -> SimpleNamespace:
    """Returns all weights in fp16, on the CPU: the same on every machine."""
    made = torch.Generator().manual_seed(seed)

    def matrix(rows: int, columns: int) -> torch.Tensor:
        return (torch.randn(rows, columns, generator=made) * rows**-0.5).half()

    def vector(length: int, around: float) -> torch.Tensor:
        return (torch.randn(length, generator=made) * 0.1 + around).half()

    C, D = size.width, size.head
    layers = [
        SimpleNamespace(
            norm=vector(C, 1.0),
            qkv=matrix(C, (size.heads + 2 * size.kv_heads) * D),
            o=matrix(C, C),
            mlp_norm=vector(C, 1.0),
            gate=matrix(C, size.hidden),
            up=matrix(C, size.hidden),
            bias=vector(size.hidden, 0.0),
            down=matrix(size.hidden, C),
        )
        for _ in range(size.layers)
    ]
    words = (torch.randn(len(WORDS), C, generator=made)).half()
    return SimpleNamespace(words=words, layers=layers, norm=vector(C, 1.0), head=matrix(C, len(WORDS)))


def moved(of: SimpleNamespace, device: str, dtype: torch.dtype) -> SimpleNamespace:
    """Returns the same weights on another device and in another dtype."""
    parts = {name: [moved(one, device, dtype) for one in part] if name == "layers" else part.to(device, dtype)
             for name, part in vars(of).items()}  # fmt: skip
    return SimpleNamespace(**parts)


class Llama:
    """The model and the caches of one sequence. `kernels`: PLAIN, or others under the same names."""

    def __init__(self, size: Size, weights: SimpleNamespace, kernels: SimpleNamespace) -> None:
        self.size, self.weights, self.kernels = size, weights, kernels
        device, dtype = weights.head.device, weights.head.dtype
        rows = torch.arange(PAGES * PAGE, device=device)
        # The pages of the sequence lie in memory in another order, as they do where many sequences share the memory.
        self.table = (torch.arange(PAGES, device=device) * 5 % PAGES)[None].int()  # [1, PAGES]
        self.slots = self.table[0, rows // PAGE].long() * PAGE + rows % PAGE  # where the key of each position lies
        shape = (size.layers, PAGES, PAGE, size.kv_heads, size.head)
        self.k_cache, self.v_cache = (torch.zeros(shape, device=device, dtype=dtype) for _ in range(2))
        turns = 10_000.0 ** (-torch.arange(0, size.head, 2, device=device) / size.head)
        self.cos, self.sin = (rows[:, None] * turns).cos(), (rows[:, None] * turns).sin()  # fp32, as 11 wants them

    def read(self, tokens: torch.Tensor) -> torch.Tensor:
        """Reads a prompt, [M] int64, and returns the logits after each word, [M, words]."""
        return self._logits(tokens, torch.arange(len(tokens), device=tokens.device), self._attention)

    def step(self, token: torch.Tensor, position: torch.Tensor) -> torch.Tensor:
        """Takes the word at a position, each [1] int64, and returns the logits of the next word, [1, words]."""
        return self._logits(token, position, self._paged_attention)

    def _logits(self, tokens, positions, attend):
        kernels, of = self.kernels, self.weights
        x = kernels.gather_rows(of.words, tokens)
        residual = torch.zeros_like(x)
        for number, layer in enumerate(of.layers):
            z = kernels.add_rms_norm(x, residual, layer.norm, EPS)  # adds x to the residual, in place
            o = self._attended(z @ layer.qkv, positions, attend, self.k_cache[number], self.v_cache[number])
            z = kernels.add_rms_norm(o @ layer.o, residual, layer.mlp_norm, EPS)
            up = kernels.linear_leaky_relu(z, layer.up, layer.bias)
            x = kernels.swiglu(z @ layer.gate, up) @ layer.down
        return kernels.add_rms_norm(x, residual, of.norm, EPS) @ of.head

    def _attended(self, qkv, positions, attend, k_cache, v_cache):
        """qkv: [M, (H + 2 HK) D]; returns [M, H D]. The keys and values are in the caches then."""
        M, H, HK, D = len(qkv), self.size.heads, self.size.kv_heads, self.size.head
        heads = qkv.view(M, H + 2 * HK, D)
        turned = heads[:, : H + HK].transpose(0, 1)[None]  # queries and keys: [1, H + HK, M, D], a view
        turned = self.kernels.rope(turned, self.cos, self.sin, positions[None])
        q, k, v = turned[:, :H], turned[:, H:], heads[:, H + HK :]
        self.kernels.kv_cache_write(k[0].transpose(0, 1), v, k_cache, v_cache, self.slots[positions])
        return attend(q, k, v, k_cache, v_cache, positions)

    def _attention(self, q, k, v, k_cache, v_cache, positions):
        o = self.kernels.attention(q, k, v.transpose(0, 1)[None])  # [1, H, M, D]
        return o[0].transpose(0, 1).flatten(1)

    def _paged_attention(self, q, k, v, k_cache, v_cache, positions):
        o = self.kernels.paged_attention(q[:, :, 0], k_cache, v_cache, self.table, (positions + 1).int())  # [1, H, D]
        return o.flatten(1)


# ---- the nine steps in plain torch -----------------------------------------------------------------------------------


def gather_rows(table, index):
    return table[index]


def add_rms_norm(x, residual, weight, eps):
    residual += x
    return F.rms_norm(residual, weight.shape, weight, eps)


def rope(q, cos, sin, positions):
    a, e = q.chunk(2, dim=-1)
    c, n = cos[positions][:, None], sin[positions][:, None]
    return torch.cat((a * c - e * n, e * c + a * n), dim=-1).to(q.dtype)


def kv_cache_write(k, v, k_cache, v_cache, slots):
    k_cache.view(-1, *k.shape[1:])[slots] = k
    v_cache.view(-1, *v.shape[1:])[slots] = v


def attention(q, k, v):
    return F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)


def paged_attention(q, k_cache, v_cache, block_table, lengths):
    k, v = (cache[block_table].flatten(1, 2).transpose(1, 2) for cache in (k_cache, v_cache))  # [B, HK, T * page, D]
    is_key = torch.arange(k.shape[2], device=q.device) < lengths[:, None]
    return F.scaled_dot_product_attention(q[:, :, None], k, v, is_key[:, None, None], enable_gqa=True)[:, :, 0]


def linear_leaky_relu(a, b, bias):
    return F.leaky_relu(torch.addmm(bias, a, b), 0.01)


def swiglu(gate, up):
    return F.silu(gate) * up


def cross_entropy(logits, target):
    return F.cross_entropy(logits.float(), target, reduction="none")


PLAIN = SimpleNamespace(**{name: globals()[name] for name in KERNELS})
