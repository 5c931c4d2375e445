"""Torch may allocate, fill and view. What else it is asked for is refused, and the refusal is on record."""

import pytest
import torch

X = torch.randn(4, 8)

ALLOWED = """
def entry(x):
    z = torch.empty_like(x)
    for t in (torch.empty(3, device='cuda'), torch.zeros(2, 2, device='cuda'), torch.ones(2, device='cuda'),
              torch.full((2,), 7.0), torch.zeros_like(x),
              torch.empty_strided((2, 2), (2, 1)), x.new_empty(3), x.new_zeros(3), x.new_full((2,), 1.0)):
        t.fill_(2.0)
        t.zero_()
    x.view(-1), x.reshape(8, 4), x.t(), x.T, x.transpose(0, 1), x.permute(1, 0), x.as_strided((2,), (3,))
    x[0], x[:, 1:3], x[..., None], x.unsqueeze(0).squeeze(0), x[:1].expand(5, 8), x.flatten(), x.detach(), x.unbind(0)
    x.contiguous(), x.to(x.dtype), x.numel(), x.stride(), x.size(0), x.data_ptr(), x.dtype, x.device, x.is_cuda
    x.is_contiguous(), x.untyped_storage().nbytes(), x.element_size(), x.dim(), len(x), x.shape
    print(x, f"{x}")
    z[0].fill_(float("-inf"))
    return z
"""


def test_allocation_fill_and_view_are_fine(child):
    child.load(ALLOWED)
    reply = child.run("entry", x=X)
    assert reply.error is None and reply.refusals == []
    assert reply.writer[0].tolist() == [-2] * 8 and reply.writer[1].tolist() == [-1] * 8


REFUSED = {
    "torch.softmax(x, -1)": "torch.softmax",
    "torch.nn.functional.softmax(x, dim=-1)": "torch.nn.functional.softmax",
    "x.t().contiguous()": ".contiguous()",
    "x.t().reshape(-1)": ".reshape()",
    "x.clone()": ".clone()",
    "x.half()": ".half()",
    "x.to(torch.float16)": ".to()",
    "x.sum().item()": ".sum()",
    "x[0, 0].item()": ".item()",
    "float(x[0, 0])": ".__float__()",
    "x.max()": ".max()",
    "x + x": "the operator +",
    "1 - x": "the operator -",
    "x @ x.t()": "the operator @",
    "torch.matmul(x, x.t())": "torch.matmul",
    "x[x > 0]": "the operator >",
    "x.copy_(torch.empty_like(x))": ".copy_()",
    "torch.empty_like(x).copy_(x)": ".copy_()",
    "torch.add(x, 1, out=x)": "torch.add",
    "x.numpy()": ".numpy()",
    "x.apply_(abs)": ".apply_()",
    "x.map_(x, max)": ".map_()",
    "setattr(x, 'data', x.t())": ".data",
    "triton.cdiv(x, 1)": ".add()",
    "__import__('functools').partial(next, map(torch.exp, [x]))()": "torch.exp",
    "x.tolist()": ".tolist()",
    "__import__('numpy').asarray(x)": ".__array__()",
    "torch.empty(4, device='cuda').fill_(x[0, 0])": ".fill_()",
    "torch.rand(3)": "torch.rand",
    "torch.ops.aten.exp(x)": "torch.ops.aten.exp",
}


def test_work_is_refused_by_name_and_line(child):
    entries = "".join(f"def entry_{i}(x):\n    return {code}\n\n" for i, code in enumerate(REFUSED))
    child.load(entries)
    for i, (code, operation) in enumerate(REFUSED.items()):
        reply = child.run(f"entry_{i}", x=X)
        assert reply.refusals == [{"operation": operation, "line": 5 + 3 * i}], code
        assert reply.error["type"] == "TorchRefused" and reply.error["kind"] == "host"


@pytest.mark.parametrize("catch", ["Exception", "BaseException"])
def test_except_does_not_hide_a_refusal(child, catch):
    child.load(f"""
        def entry(x):
            z = torch.empty_like(x)
            try:
                z = torch.exp(x)
            except {catch}:
                pass
            return z
    """)
    reply = child.run("entry", x=X)
    assert reply.error is None and reply.refusals == [{"operation": "torch.exp", "line": child.line("torch.exp")}]


def test_printing_shows_a_shape_and_the_program_cannot_read_values(fresh_child):
    fresh_child.load("""
        def entry(x):
            texts = [str(x), repr(x), f"{x}", "%s" % x, format(x)]
            assert not any("7.5" in text for text in texts), texts
            print(x)
            return torch.empty_like(x)
    """)
    assert fresh_child.run("entry", x=torch.tensor([7.5])).error is None
    fresh_child.close()
    assert fresh_child.process.printed == "tensor(..., device='cuda:0', size=(1,))\n"


KEPT = """
    KEPT = []
    TABLE = torch.ones(8, device='cuda')

    @triton.jit
    def copy_kernel(x_ptr, z_ptr):
        i = tl.arange(0, 8)
        tl.store(z_ptr + i, tl.load(x_ptr + i))

    def copied(x):
        z = torch.empty(8, device='cuda')
        copy_kernel[(1,)](x, z)
        return z

    def kept(x):
        KEPT.append(copied(x))
        return copied(KEPT[0])

    def kept_from_before(x):
        return copied(KEPT[0])

    def made_at_import(x):
        return copied(TABLE)

    def made_of_numbers(x):
        return copied(torch.tensor([float(i) for i in range(8)], device=x.device))

    def on_the_cpu(x):
        return copied(torch.ones(8))
"""


def test_kernels_get_only_memory_of_the_call(child):
    child.load(KEPT)
    assert child.run("kept", x=torch.ones(8)).error is None
    assert child.run("made_of_numbers", x=torch.ones(8)).output.tolist() == list(range(8))
    error = child.run("on_the_cpu", x=torch.ones(8)).error
    assert error["kind"] == "not-recordable" and "x lies in the CPU's memory" in error["message"].replace("_ptr", "")
    for entry in ("kept_from_before", "made_at_import"):
        error = child.run(entry, x=torch.ones(8)).error
        assert (error["kind"], error["message"]) == ("foreign-memory", "x"), entry
        assert error["line"] == child.line("copy_kernel[(1,)]")
