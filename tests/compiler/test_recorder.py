"""What a host function does becomes a launch plan: buffers, fills, launches, and nothing that a plan cannot hold."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from grader.gpu.plan import Choice, Fill, PlannedLaunch

SOLUTIONS = Path(__file__).resolve().parent.parent.parent / "solutions"
SCALE = """
    @triton.jit
    def scale_kernel(x_ptr, z_ptr, factor, N, BLOCK: tl.constexpr):
        i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        tl.store(z_ptr + i, tl.load(x_ptr + i, mask=i < N) * factor, mask=i < N)

    def launch(x, z, factor=2.0):
        scale_kernel[(triton.cdiv(x.numel(), 256),)](x, z, factor, x.numel(), BLOCK=256)
        return z
"""


def meta(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.empty(shape, dtype=dtype, device="meta")


def entry(body: str) -> str:
    """A file with SCALE, and `entry` with this body."""
    lines = "\n".join(f"        {line}" for line in body.strip().splitlines())
    return f"{SCALE}\n    def entry(x):\n{lines}\n"


def test_a_launch_binds_its_parameters_to_buffers_and_numbers(recording):
    plan = recording(entry("return launch(x, torch.empty_like(x))")).plan("entry", x=meta(1000))
    (launch,) = plan.steps
    assert isinstance(launch, PlannedLaunch) and launch.grid == [4, 1, 1]
    bound = [(p.name, p.type, p.buffer, p.offset, p.value) for p in launch.parameters]
    assert bound == [
        ("x_ptr", "pointer", 0, 0, ""),
        ("z_ptr", "pointer", 1, 0, ""),
        ("factor", "fp32", -1, 0, "2.0"),
        ("N", "i32", -1, 0, "1000"),
        ("global scratch", "pointer", -1, 0, ""),
        ("profile scratch", "pointer", -1, 0, ""),
    ]
    assert [(b.name, b.argument, b.bytes) for b in plan.buffers] == [("x", True, 4000), ("allocation1", False, 4000)]
    z = plan.results["z"]
    assert (z.buffer, z.shape, z.dtype) == (1, [1000], "float32")


def test_views_become_offsets_in_bytes(recording):
    plan = recording(entry("z = torch.empty(8, 100, device=x.device)\nreturn launch(x[3], z[2])")).plan(
        "entry", x=meta(5, 100)
    )
    (launch,) = plan.steps
    assert [p.offset for p in launch.parameters[:2]] == [3 * 400, 2 * 400]
    assert plan.results["z"].offset == 2 * 400


def test_fills_are_steps(recording):
    body = "z = torch.full((7,), float('-inf'), device=x.device)\nz[2:] = 3\nz.zero_()\nreturn launch(x, z)"
    plan = recording(entry(body)).plan("entry", x=meta(7))
    fills = [step for step in plan.steps if isinstance(step, Fill)]
    assert [step.value for step in fills] == [float("-inf"), 3, 0]
    assert [step.view.offset for step in fills] == [0, 8, 0]


def test_an_autotuned_launch_is_a_choice_of_all_configurations(recording):
    source = """
        configs = [triton.Config({"BLOCK": b}, num_warps=w) for b, w in ((128, 4), (1024, 8), (1024, 64))]

        @triton.autotune(configs, key=["N"])
        @triton.jit
        def copy_kernel(x_ptr, z_ptr, N, BLOCK: tl.constexpr):
            i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
            tl.store(z_ptr + i, tl.load(x_ptr + i, mask=i < N), mask=i < N)

        def entry(x):
            z = torch.empty_like(x)
            copy_kernel[lambda meta: (triton.cdiv(x.numel(), meta["BLOCK"]),)](x, z, x.numel())
            return z
    """
    plan = recording(source).plan("entry", x=meta(4096))
    (choice,) = plan.steps
    assert isinstance(choice, Choice) and plan.configs == 3
    assert [next(plan.launches(config)).grid[0] for config in (0, 1)] == [32, 4]
    assert "threads" in choice.alternatives[2].error and not choice.alternatives[2].steps


def test_host_code_may_ask_what_it_asks_on_a_gpu(recording):
    body = """
assert x.is_cuda and not x.is_cpu and x.device == torch.device("cuda", 0) and x.get_device() == 0
assert torch.cuda.is_available() and torch.cuda.get_device_capability() == (9, 0)
assert torch.cuda.get_device_properties(x.device).multi_processor_count == 132
z = torch.empty(x.shape, device="cuda")
with torch.cuda.device(x.device):
    kernel = scale_kernel.warmup(x, z, 2.0, x.numel(), BLOCK=256, grid=(1,))
    kernel._init_handles()
assert kernel.n_regs > 0 and kernel.n_spills == 0
return launch(x, z)
"""
    assert recording(entry(body)).plan("entry", x=meta(1000)).error is None


def test_a_scratch_allocator_is_called(recording):
    source = """
        @triton.jit
        def copy_kernel(x_ptr, z_ptr, M, N, BLOCK: tl.constexpr):
            x = tl.make_tensor_descriptor(x_ptr, [M, N], [N, 1], [BLOCK, BLOCK])
            z = tl.make_tensor_descriptor(z_ptr, [M, N], [N, 1], [BLOCK, BLOCK])
            at = [tl.program_id(0) * BLOCK, tl.program_id(1) * BLOCK]
            z.store(at, x.load(at))

        def entry(x):
            triton.set_allocator(lambda size, align, stream: torch.empty(size, dtype=torch.int8, device="cuda"))
            z = torch.empty_like(x)
            copy_kernel[(2, 2)](x, z, 128, 128, BLOCK=64)
            return z
    """
    plan = recording(source).plan("entry", x=meta(128, 128))
    (launch,) = plan.steps
    scratch = launch.parameters[-2]
    assert scratch.name == "global scratch" and plan.buffers[scratch.buffer].bytes == 4 * 256


HOST_DESCRIPTORS = """
    from triton.tools.tensor_descriptor import TensorDescriptor

    @triton.jit
    def copy_kernel(x, z, BLOCK: tl.constexpr):
        at = [tl.program_id(0) * BLOCK, tl.program_id(1) * BLOCK]
        z.store(at, x.load(at))

    def entry(x):
        z = torch.empty_like(x)
        maps = [TensorDescriptor.from_tensor(t, [64, 64]) for t in (x, z)]
        copy_kernel[(2, 2)](*maps, BLOCK=64)
        return z
"""


def test_a_host_descriptor_becomes_a_tensor_map(recording):
    plan = recording(HOST_DESCRIPTORS).plan("entry", x=meta(128, 128, dtype=torch.float16))
    (launch,) = plan.steps
    first = launch.parameters[0]
    assert first.type == "tensormap" and first.map.shape == [128, 128] and first.map.strides == [128, 1]


def test_a_host_descriptor_is_taken_apart_where_there_is_no_copy_engine(recording):
    """An A100 has none: Triton's code for it takes the address, the sizes and the strides."""
    plan = recording(HOST_DESCRIPTORS, "sm_80").plan("entry", x=meta(128, 64, dtype=torch.float16))
    (launch,) = plan.steps
    x = launch.parameters[: len(launch.parameters) // 2 - 1]
    assert [one.type for one in x][:5] == ["pointer", "i64", "i64", "i64", "i64"]
    assert [one.value for one in x][1:6] == ["128", "64", "64", "1", "0"]
    assert [(one.type, one.value) for one in x[-4:]] == [("i32", "128"), ("i32", "64"), ("i64", "64"), ("i64", "1")]
    assert [parameter.bytes for parameter in launch.parameters] == plan.kernels[0].cubin.parameters


@pytest.mark.parametrize("target", ["sm_80", "sm_90", "sm_100"])
def test_kernels_are_compiled_for_the_target(recording, target):
    plan = recording(SOLUTIONS / "05_grouped_matmul" / "grouped_matmul.py", target).plan(
        "matmul", constants={"BLOCK_M": 64, "BLOCK_N": 64, "BLOCK_K": 32}, a=meta(256, 256, dtype=torch.float16),
        b=meta(256, 256, dtype=torch.float16),
    )  # fmt: skip
    assert plan.kernels[0].cubin.arch == int(target[3:])


def test_an_empty_grid_is_no_launch(recording):
    assert recording(entry("return launch(x, torch.empty_like(x))")).plan("entry", x=meta(0)).steps == []


REFUSED = {
    "torch computes": ("return launch(torch.softmax(x, 0), torch.empty_like(x))", None),
    "a copy": ("return launch(x.clone(), torch.empty_like(x))", None),
    "values are read": ("return launch(x, torch.empty_like(x), x[0].item())", None),
    "a CPU tensor": ("return launch(x, torch.empty(x.shape))", "lies in the CPU's memory"),
    "an address as a number": (
        "scale_kernel[(1,)](x, x, 2.0, torch.empty_like(x).data_ptr(), BLOCK=256)\nreturn x",
        "the argument N is a tensor's address, passed as a number",
    ),
    "too many launches": (
        "z = torch.empty_like(x)\nfor _ in range(65):\n    launch(x, z)\nreturn z", "more than 64 launches"
    ),
    "too many tensors": (
        "z = [torch.empty_like(x) for _ in range(65)]\nreturn launch(x, z[0])", "more than 64 tensors"
    ),
    "an impossible grid": (
        "scale_kernel[(1, 70000)](x, x, 2.0, 5, BLOCK=256)\nreturn x", "the grid (1, 70000) is too large"
    ),
}  # fmt: skip


@pytest.mark.parametrize("body, sentence", REFUSED.values(), ids=REFUSED)
@pytest.mark.parametrize("hidden", [False, True], ids=["", "hidden by except"])
def test_what_a_plan_cannot_hold_is_refused(recording, body, sentence, hidden):
    if hidden:
        body = (
            "try:\n    "
            + body.replace("\n", "\n    ")
            + "\nexcept Exception:\n    return launch(x, torch.empty_like(x))"
        )
    recorded = recording(entry(body))
    plan = recorded.plan("entry", x=meta(1000))
    if sentence is None:
        assert plan.refusals and not plan.steps
    else:
        assert plan.error.kind == "not-recordable" and sentence in plan.error.message and plan.error.line


def test_a_kernel_from_elsewhere_is_refused(recording):
    elsewhere = "import triton\\n\\n@triton.jit\\ndef elsewhere_kernel(x_ptr):\\n    pass\\n"
    source = f"""
        open("elsewhere.py", "w").write("{elsewhere}")
        import sys
        sys.path.append(".")
        from elsewhere import elsewhere_kernel

        def entry(x):
            elsewhere_kernel[(1,)](x)
            return x
    """
    plan = recording(source).plan("entry", x=meta(10))
    assert "which does not stand in the submission" in plan.error.message


def test_constants_are_replaced(recording):
    source = SOLUTIONS / "01_masked_add" / "masked_add.py"
    plan = recording(source).plan("masked_add", constants={"BLOCK_N": 256}, x=meta(1024), y=meta(1024))
    assert next(plan.launches()).grid == [4, 1, 1]


def test_a_block_that_does_not_fit_is_refused(recording):
    solution = (SOLUTIONS / "05_grouped_matmul" / "grouped_matmul.py").read_text()
    recorded = recording(solution.replace("num_stages=stages_that_fit(a.device)", "num_stages=5"))
    half = meta(4096, 4096, dtype=torch.float16)
    plan = recorded.plan("matmul", a=half, b=half)
    assert plan.error.kind == "resources" and "shared memory" in plan.error.message
