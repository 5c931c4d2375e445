"""Host functions are told what they would be told on a GPU, wherever they ask, and nothing that only data knows."""

from __future__ import annotations

import struct

import pytest

from grader.wire.messages import CAPABILITY, MULTIPROCESSORS
from grader.wire.recorded_parts import Fill, PlannedLaunch, PythonNumbers
from tests.child.recorded_calls import entry, meta

ASKED = """
    assert x.is_cuda and not x.is_cpu and x.device == torch.device("cuda", 0) and x.get_device() == 0
    assert x.device.type == "cuda" and x.device.index == 0 and str(x.device) == "cuda:0"
    assert torch.cuda.is_available() and torch.cuda.device_count() == 1 and torch.cuda.current_device() == 0
    assert torch.cuda.get_device_capability() == torch.cuda.get_device_capability(x.device) == (9, 0)
    properties = torch.cuda.get_device_properties(x.device)
    assert (properties.multi_processor_count, properties.major, properties.minor) == (132, 9, 0)
    assert properties.shared_memory_per_block_optin == 232448 and "H200" in torch.cuda.get_device_name()
    assert torch.cuda.is_bf16_supported() and torch.cuda.current_stream().cuda_stream == 0
    assert torch.cuda.current_stream() == torch.cuda.default_stream(x.device)
    torch.cuda.set_device(x.device)
    with torch.cuda.device(x.device), torch.cuda.device_of(x), torch.cuda.device(0), torch.no_grad():
        torch.cuda.synchronize()
    with torch.cuda.stream(torch.cuda.current_stream()):
        torch.cuda.current_stream().synchronize()
    device = triton.runtime.driver.active.get_active_torch_device()
    assert device == x.device and triton.runtime.driver.active.get_current_device() == 0
    assert triton.runtime.driver.active.get_current_target().arch == 90
    assert triton.runtime.driver.active.utils.get_device_properties(0)["multiprocessor_count"] == 132
    for z in (torch.empty(5, device="cuda"), torch.empty(5, device=0), torch.empty(5, device=device), x.new_empty(5)):
        assert z.is_cuda and z.to("cuda") is z and z.cuda() is z and z.to(x.device).device == device
    with torch.device("cuda"):
        assert torch.empty(3).is_cuda
    torch.set_default_device("cuda")
    assert torch.empty(3).is_cuda and torch.get_default_device() == device
    torch.set_default_device(None)
    assert not torch.empty(3).is_cuda and x.data_ptr() % 16 == 0
    assert not x.is_meta and x.type() == "torch.cuda.FloatTensor"
    assert torch.promote_types(x.dtype, torch.float64) == torch.float64 and torch.can_cast(torch.int8, x.dtype)
    with torch.profiler.record_function("a part"), torch.autocast("cuda", dtype=torch.float16):
        torch.cuda.nvtx.range_push("another")
"""


def test_a_host_function_may_ask_what_it_asks_on_a_gpu(recording):
    call = recording(entry(ASKED + "    return launch(x, torch.empty_like(x))"))("entry", x=meta(1000))
    assert call.error is None and not call.refusals
    assert isinstance(call.steps[-1], PlannedLaunch)


def test_a_file_may_ask_at_its_top_and_under_names_of_its_own(recording):
    source = """
        from torch.cuda import current_device, get_device_properties, is_available, synchronize
        from triton.runtime import driver

        DEVICE = triton.runtime.driver.active.get_active_torch_device()
        PROCESSORS = get_device_properties(current_device()).multi_processor_count
        SHARED = driver.active.utils.get_device_properties(DEVICE.index)["max_shared_mem"]
        assert is_available() and torch.empty(3, device=DEVICE).is_cuda

        @triton.jit
        def kernel(x_ptr):
            tl.store(x_ptr + tl.arange(0, 16), 0.0)

        def entry(x):
            assert x.device == DEVICE and current_device() == 0 and SHARED == 232448
            kernel[(PROCESSORS,)](x)
            synchronize()
            return torch.empty(7, device=DEVICE)
    """
    call = recording(source)("entry", x=meta(16))
    assert call.error is None and call.steps[0].grid == [132, 1, 1]
    assert (call.returned.device, call.returned.view.buffer) == ("cuda", 1)


OCCUPANCY = """
    DEVICE = triton.runtime.driver.active.get_active_torch_device()
    properties = triton.runtime.driver.active.utils.get_device_properties(DEVICE.index)
    NUM_SM, NUM_REGS = properties["multiprocessor_count"], properties["max_num_regs"]
    SIZE_SMEM, WARP_SIZE = properties["max_shared_mem"], properties["warpSize"]

    @triton.jit
    def row_kernel(z_ptr, x_ptr, stride, n_rows, n_cols, BLOCK: tl.constexpr, num_stages: tl.constexpr):
        for row in tl.range(tl.program_id(0), n_rows, tl.num_programs(0), num_stages=num_stages):
            at = tl.arange(0, BLOCK)
            x = tl.load(x_ptr + row * stride + at, mask=at < n_cols, other=-float("inf"))
            tl.store(z_ptr + row * stride + at, x - tl.max(x, axis=0), mask=at < n_cols)

    def entry(x):
        n_rows, n_cols = x.shape
        BLOCK = triton.next_power_of_2(n_cols)
        z = torch.empty_like(x)
        num_stages = 4 if SIZE_SMEM > 200000 else 2
        kernel = row_kernel.warmup(z, x, x.stride(0), n_rows, n_cols, BLOCK=BLOCK, num_stages=num_stages, num_warps=8,
                                   grid=(1,))
        kernel._init_handles()
        occupancy = NUM_REGS // (kernel.n_regs * WARP_SIZE * 8)
        occupancy = min(occupancy, SIZE_SMEM // max(kernel.metadata.shared, 1))
        programs = min(NUM_SM * occupancy, n_rows)
        kernel[(programs, 1, 1)](z, x, x.stride(0), n_rows, n_cols, BLOCK, num_stages)
        return z
"""


@pytest.mark.parametrize(("target", "processors"), [("sm_90", 132), ("sm_80", 108)])
def test_a_launch_may_depend_on_how_many_programs_fit(recording, target, processors):
    call = recording(OCCUPANCY, target)("entry", x=meta(100_000, 781))
    assert call.error is None
    (launch,) = call.steps
    assert launch.grid[0] % processors == 0 and launch.dimensions == 3


DATA = {
    "torch.tensor(x.stride(), device=x.device)": ("int64", [2], struct.pack("<2q", 9, 1)),
    "torch.tensor([1.5, -2], dtype=torch.float16, device='cuda')": ("float16", [2], struct.pack("<2e", 1.5, -2)),
    "x.new_tensor([[1, 2], [3, 4]])": ("float32", [2, 2], struct.pack("<4f", 1, 2, 3, 4)),
    "torch.as_tensor([True, False], device=x.device)": ("bool", [2], b"\1\0"),
    "torch.tensor(x.shape).to(x.device, torch.int32)": ("int32", [2], struct.pack("<2i", 7, 9)),
    "torch.tensor([3]).cuda()": ("int64", [1], struct.pack("<q", 3)),
    "torch.tensor(2.5, device=x.device)": ("float32", [], struct.pack("<f", 2.5)),
    "torch.tensor([1, 2]).to(x)": ("float32", [2], struct.pack("<2f", 1, 2)),
}


@pytest.mark.parametrize("made", DATA)
def test_a_few_numbers_made_in_python_are_bytes_of_the_plan(recording, made):
    call = recording(entry(f"z = {made}\nreturn launch(x, z)"))("entry", x=meta(7, 9))
    assert call.error is None and not call.refusals
    data, launch = call.steps
    dtype, shape, content = DATA[made]
    assert isinstance(data, PythonNumbers) and data.line
    assert (data.view.dtype, data.view.shape, data.bytes) == (dtype, shape, content)
    assert launch.parameters[1].buffer == data.view.buffer == call.returned.view.buffer


REFUSED = {
    "x[0].item()": ".item()",
    "x.tolist()": ".tolist()",
    "float(x[0])": ".__float__()",
    "f'{x[0, 0]:.1f}'": ".__format__()",
    "x.numpy()": ".numpy()",
    "x.cpu()": ".cpu()",
    "bool(x[0] > 0)": "the operator >",
    "torch.softmax(x, 0)": "torch.softmax",
    "x + x": "the operator +",
    "x.sum()": ".sum()",
    "x.clone()": ".clone()",
    "x.to(torch.float16)": ".to()",
    "torch.arange(4, device=x.device)": "torch.arange",
    "torch.tensor(x)": "torch.tensor",
    "x.t().contiguous()": ".contiguous()",
    "torch.rand(4, device='cuda')": "torch.rand",
}


@pytest.mark.parametrize("text", REFUSED)
@pytest.mark.parametrize("hidden", [False, True], ids=["", "hidden by except"])
def test_what_needs_data_is_refused_by_name_and_line(recording, text, hidden):
    body = f"try:\n    {text}\nexcept Exception:\n    pass\nreturn launch(x, x)" if hidden else f"{text}\nreturn x"
    recorded = recording(entry(body))
    call = recorded("entry", x=meta(8, 8))
    assert [(one.operation, one.line) for one in call.refusals] == [(REFUSED[text], recorded.line(text))]


SENTENCES = {
    "torch.cuda.Event(enable_timing=True)": "torch.cuda.Event measures time",
    "torch.cuda.Stream()": "torch.cuda.Stream is another stream",
    "triton.testing.do_bench(lambda: None)": "triton.testing.do_bench measures time",
    "torch.tensor([0.0] * 1025, device=x.device)": "4100 bytes of numbers are made in Python, and at most 4096",
    "torch.tensor([x[0, 0], 1.0], device=x.device)": "a tensor is made of another one's elements",
    "torch.empty(3, device='meta')": "device='meta' makes tensors without memory",
    "x.new_empty(3, device=torch.device('meta'))": "device='meta' makes tensors without memory",
    "x.to('meta')": "device='meta' makes tensors without memory",
    "launch(x, torch.empty(x.shape))": "the argument z_ptr lies in the CPU's memory",
    "scale_kernel[(1,)](x, x, 2.0, x.data_ptr(), BLOCK=256)": "is a tensor's address, passed as a number",
    "scale_kernel[(-1,)](x, x, 2.0, 5, BLOCK=256)": "the grid (-1,) has a size below 0",
    "scale_kernel[(1, 70000)](x, x, 2.0, 5, BLOCK=256)": "the grid (1, 70000) is too large",
    "[launch(x, x) for _ in range(65)]": "more than 64 launches",
    "[torch.empty_like(x) for _ in range(65)]": "more than 64 tensors",
}


@pytest.mark.parametrize("text", SENTENCES)
@pytest.mark.parametrize("hidden", [False, True], ids=["", "hidden by except"])
def test_what_a_recorded_call_cannot_hold_is_refused_in_a_sentence(recording, text, hidden):
    body = f"try:\n    {text}\nexcept Exception:\n    pass\nreturn launch(x, x)" if hidden else f"{text}\nreturn x"
    call = recording(entry(body))("entry", x=meta(8, 8))
    assert call.error.kind == "not-recordable" and SENTENCES[text] in call.error.message and call.error.line


def test_fills_are_steps_and_of_the_dtype_of_their_tensor(recording):
    body = """
        z = torch.full((7,), float('-inf'), device=x.device)
        z[2:] = 3
        z.zero_()
        torch.full((3,), 2.5, dtype=torch.int32, device=x.device)
        torch.full((3,), 7, dtype=torch.bool, device=x.device)
        torch.zeros(3, dtype=torch.float8_e5m2, device=x.device)
        torch.full((3,), 1 + 2j, device=x.device)
        return launch(x, z)
    """
    call = recording(entry(body))("entry", x=meta(7))
    fills = [(step.value, step.view.dtype, step.view.offset) for step in call.steps if isinstance(step, Fill)]
    assert fills[:3] == [(float("-inf"), "float32", 0), (3, "float32", 8), (0, "float32", 0)]
    assert [fill[:2] for fill in fills[3:6]] == [(2, "int32"), (1, "bool"), (0, "float8_e5m2")]
    assert fills[6:] == [(1, "float32", 0), (2, "float32", 4)]


IDIOMS = {
    "a module": """
        class Scale(torch.nn.Module):
            def __init__(self):
                super().__init__()

            def forward(self, x):
                return launch(x, torch.empty_like(x))

        module = Scale()

        def entry(x):
            return module(x)
    """,
    "an autograd function": """
        class Scale(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                return launch(x, torch.empty_like(x))

        def entry(x):
            return Scale.apply(x)
    """,
    "a dataclass, logging and quoted annotations": """
        import dataclasses, functools, logging
        from typing import TYPE_CHECKING

        if TYPE_CHECKING:
            from nowhere import Nothing

        logger = logging.getLogger(__name__)

        @dataclasses.dataclass(frozen=True)
        class Settings:
            _block: int = 256

            def _grid(self, meta: "Nothing") -> "tuple[int, ...]":
                return (triton.cdiv(1000, meta["BLOCK"]),)

        @functools.lru_cache
        def _settings():
            logger.warning("asked")
            return Settings()

        @torch.inference_mode()
        def entry(x: "torch.Tensor") -> "torch.Tensor":
            z = torch.empty_like(x)
            logger.info("shape %s of %s", x.shape, x)
            scale_kernel[_settings()._grid](x, z, 2.0, x.numel(), BLOCK=_settings()._block)
            return z
    """,
    "values for debugging": """
        @triton.jit(debug=True)
        def checked_kernel(x_ptr, z_ptr):
            i = tl.arange(0, 1024)
            tl.device_assert(tl.program_id(0) == 0, "one")
            tl.device_print("x", i)
            tl.store(z_ptr + i, tl.load(x_ptr + i, mask=i < 1000), mask=i < 1000)

        def entry(x):
            z = torch.empty_like(x)
            checked_kernel[(1,)](x, z)
            print("before", x, f"{z}")
            return z
    """,
    "heuristics and a hook": """
        @triton.heuristics({"EVEN": lambda arguments: arguments["N"] % arguments["BLOCK"] == 0})
        @triton.jit
        def kernel(x_ptr, z_ptr, N, BLOCK: tl.constexpr, EVEN: tl.constexpr):
            i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
            tl.store(z_ptr + i, tl.load(x_ptr + i, mask=i < N), mask=i < N)

        def entry(x):
            z = torch.empty_like(x)
            kernel[lambda meta: (triton.cdiv(x.numel(), meta["BLOCK"]),)](x, z, x.numel(), BLOCK=256)
            return z
    """,
    "a fallback for the CPU": """
        def entry(x):
            if not x.is_cuda or not torch.cuda.is_available():
                return x * 2
            return launch(x.contiguous().cuda(), torch.empty(x.shape, dtype=x.dtype, device=x.device.type))
    """,
}


@pytest.mark.parametrize("idiom", IDIOMS)
def test_any_python_may_launch(recording, idiom):
    from textwrap import dedent

    from tests.child.recorded_calls import SCALE

    call = recording(SCALE + dedent(IDIOMS[idiom]))("entry", x=meta(1000))
    assert call.error is None and not call.refusals
    (launch,) = call.steps
    assert launch.parameters[1].buffer == call.returned.view.buffer == 1


def test_what_was_tried_out_at_the_top_does_not_fail_the_file(recording):
    source = entry("return launch(x, torch.empty_like(x))") + (
        "x = torch.rand(1000, device='cuda')\n"
        "z = entry(x)\n"
        "error = (z - 2 * x).abs().max().item()\n"
        "assert error == 0\n"
        "print(error, triton.testing.do_bench(lambda: entry(x)))\n"
    )
    recorded = recording(source)
    assert recorded("entry", x=meta(1000)).error is None and recorded.runner.load_failure is None


@pytest.mark.parametrize("statement", ["nothing + 1", "assert 1 == 2", "[][1]", "import nowhere"])
def test_a_mistake_at_the_top_fails_the_file(recording, statement):
    recorded = recording(entry("return x") + statement + "\n")
    recorded("entry", x=meta(10))
    assert recorded.runner.load_failure.line == recorded.line(statement)


@pytest.mark.parametrize(
    "asked",
    [
        "torch.cuda.get_device_properties(x.device).multi_processor_count",
        'triton.runtime.driver.active.utils.get_device_properties(0)["multiprocessor_count"]',
        "PROPERTIES.multi_processor_count",
        "AT_THE_TOP",
        "once()",
    ],
)
def test_a_call_may_be_told_of_a_gpu_with_few_multiprocessors(recording, asked):
    recorded = recording(
        entry(f"x, z = x[: {asked}], torch.empty_like(x)\nscale_kernel[(x.numel(),)](x, z, 2.0, x.numel(), BLOCK=16)")
        + "PROPERTIES = torch.cuda.get_device_properties(0)\n"
        + "AT_THE_TOP = PROPERTIES.multi_processor_count\n"
        + "import functools\n"
        + "@functools.cache\ndef once():\n    return torch.cuda.get_device_properties(0).multi_processor_count\n"
    )
    calls = [{}, {MULTIPROCESSORS: 5}, {}, {MULTIPROCESSORS: 7}, {MULTIPROCESSORS: 5}]
    grids = [recorded("entry", constants, x=meta(1000)).steps[-1].grid[0] for constants in calls]
    assert grids == [132, 5, 132, 7, 5]


def test_a_call_may_be_told_of_a_gpu_of_another_capability(recording):
    asked = "torch.cuda.get_device_properties(0).major * 10 + torch.cuda.get_device_properties(0).minor"
    recorded = recording(
        entry(f"x, z = x[: {asked}], torch.empty_like(x)\nscale_kernel[(x.numel(),)](x, z, 2.0, x.numel(), BLOCK=16)")
    )
    calls = [{}, {CAPABILITY: 86}, {}]
    assert [recorded("entry", told, x=meta(1000)).steps[-1].grid[0] for told in calls] == [90, 86, 90]
