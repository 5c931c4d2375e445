"""Each kernel is recorded as the front end's text, with the recipe that it was made from."""

from __future__ import annotations

import re

import pytest
import torch

from grader.wire.recorded_parts import BadPlan, Choice, PlannedLaunch
from tests.child.recorded_calls import SCALE, entry, meta


def test_a_launch_has_the_compilers_text_and_its_recipe(recording):
    call = recording(entry("return launch(x, torch.empty_like(x))"))("entry", x=meta(1000))
    (kernel,), (launch,) = call.kernels, call.steps
    assert kernel.source.lstrip().startswith(('"builtin.module"', "#loc")) and '"tt.load"' in kernel.source
    recipe = kernel.recipe
    assert kernel.name == recipe.function == "scale_kernel"
    kinds = {"x_ptr": "*fp32", "z_ptr": "*fp32", "factor": "fp32", "N": "i32", "BLOCK": "constexpr"}
    assert recipe.signature == kinds and recipe.constants == [([4], {"value": "256"})]
    assert [[0], [["tt.divisibility", 16]]] in [list(attribute) for attribute in recipe.attrs]
    assert (recipe.options["num_warps"], recipe.options["num_ctas"]) == (4, 1)
    bound = [(p.name, p.type, p.buffer, p.offset, p.value) for p in launch.parameters]
    assert bound == [
        ("x_ptr", "pointer", 0, 0, ""),
        ("z_ptr", "pointer", 1, 0, ""),
        ("factor", "fp32", -1, 0, "2.0"),
        ("N", "i32", -1, 0, "1000"),
    ]
    assert launch.constants == {"BLOCK": "256"} and launch.grid == [4, 1, 1]


def test_the_same_text_with_the_same_options_is_one_kernel(recording):
    body = """
        z = torch.empty_like(x)
        launch(x, z)
        launch(z, x)
        scale_kernel[(4,)](x, z, 2.0, x.numel(), BLOCK=256, num_warps=8)
        scale_kernel[(4,)](x, z, 2.0, x.numel(), BLOCK=256, num_warps=8, enable_fp_fusion=False)
        scale_kernel[(4,)](x, z, 2.0, x.numel(), BLOCK=256, num_warps=8, maxnreg=64)
        return z
    """
    call = recording(entry(body))("entry", x=meta(1000))
    assert [launch.kernel for launch in call.launches()] == [0, 0, 1, 2, 3]
    options = [kernel.recipe.options for kernel in call.kernels]
    assert [one["num_warps"] for one in options] == [4, 8, 8, 8]
    assert [one["enable_fp_fusion"] for one in options] == [True, True, False, True]
    assert [one["maxnreg"] for one in options] == [None, None, None, 64]


def test_what_only_an_assertion_looks_at_is_computed_where_there_are_assertions(recording):
    checked = SCALE.replace("@triton.jit", "@triton.jit(debug=True)").replace("scale_kernel", "checked_kernel")
    recorded = recording(entry("return launch(x, x)") + checked.replace("def launch", "def checked"))
    plain, debugged = (recorded(name, x=meta(1000), z=meta(1000)).kernels[0].source for name in ("launch", "checked"))
    assert '"tt.assert"' not in plain and "arith.extsi" not in plain  # sums of 64 bits tell whether those of 32 wrapped
    assert '"tt.assert"' in debugged and "arith.extsi" in debugged


def test_an_option_that_is_not_known_is_refused(recording):
    recorded = recording(entry("scale_kernel[(4,)](x, x, 2.0, 5, BLOCK=256, ptx_options='-v')\nreturn x"))
    with pytest.raises(BadPlan, match="a launch has the option ptx_options, which is not known here"):
        recorded("entry", x=meta(1000))


def test_the_grid_is_told_as_it_was_written(recording):
    body = """
        for grid in ((4,), (4, 1), [4, 1, 1], lambda meta: (triton.cdiv(1000, meta["BLOCK"]),)):
            scale_kernel[grid](x, x, 2.0, 1000, BLOCK=256)
        kernel = scale_kernel.warmup(x, x, 2.0, 1000, BLOCK=256, grid=(1,))
        kernel[(4, 1)](x, x, 2.0, 1000, 256)
        return x
    """
    call = recording(entry(body))("entry", x=meta(1000))
    assert [launch.dimensions for launch in call.launches()] == [1, 2, 3, 1, 2]
    assert all(launch.grid == [4, 1, 1] for launch in call.launches()) and len(call.kernels) == 1


@pytest.mark.parametrize(
    ("grid", "sentence"),
    [
        ("4", "the grid must be a tuple, such as (n,): (n) without the comma is n"),
        ("(4.0,)", "the grid must hold whole numbers: triton.cdiv rounds up"),
        ("lambda meta: 4", "the grid must be a tuple, such as (n,): (n) without the comma is n"),
        ("()", "the grid must have 1 to 3 numbers"),
    ],
)
def test_a_grid_that_is_none_is_a_failure_with_its_line(recording, grid, sentence):
    recorded = recording(entry(f"scale_kernel[{grid}](x, x, 2.0, 5, BLOCK=256)\nreturn x"))
    call = recorded("entry", x=meta(1000))
    assert (call.error.kind, call.error.type, call.error.message) == ("host", "TypeError", sentence)
    assert call.error.line == recorded.line("(x, x, 2.0, 5, BLOCK=256)")


def test_what_a_host_function_asks_of_a_kernel_is_compiled(recording):
    """The persistent softmax of Triton's tutorial asks how many programs fit on a multiprocessor."""
    body = """
        kernel = scale_kernel.warmup(x, x, 2.0, 1000, BLOCK=256, grid=(1,))
        kernel._init_handles()
        assert kernel.n_regs > 0 and kernel.n_spills == 0 and kernel.metadata.shared >= 0
        assert "ptx" in kernel.asm and kernel.name == "scale_kernel"
        return launch(x, torch.empty_like(x))
    """
    call = recording(entry(body))("entry", x=meta(1000))
    assert call.error is None and len(call.kernels) == 1


def test_an_autotuned_launch_is_a_choice(recording):
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
    call = recording(source)("entry", x=meta(4096))
    (choice,) = call.steps
    assert isinstance(choice, Choice) and call.configs == 3 and call.usable_configs == [0, 1]
    assert [next(call.launches(config)).grid[0] for config in (0, 1)] == [32, 4]
    assert "threads" in choice.alternatives[2].error and not choice.alternatives[2].steps


def test_a_compile_error_names_its_line(recording):
    source = """
        @triton.jit
        def kernel(x_ptr):
            tl.store(x_ptr + tl.arange(0, 10), 0.0)

        def entry(x):
            kernel[(1,)](x)
            return x
    """
    recorded = recording(source)
    for _ in range(2):
        call = recorded("entry", x=meta(10))
        assert (call.error.kind, call.error.line, call.error.kernel) == ("compile", recorded.line("tl.store"), "kernel")
        assert "power of 2" in call.error.message


def test_a_kernel_that_calls_itself_is_told_so(recording):
    source = """
        @triton.jit
        def kernel(x_ptr, N):
            tl.store(x_ptr, 0.0)
            kernel(x_ptr, N)

        def entry(x):
            kernel[(1,)](x, 3)
            return x
    """
    recorded = recording(source)
    call = recorded("entry", x=meta(10))
    assert (call.error.kind, call.error.line) == ("compile", recorded.line("    kernel(x_ptr, N)"))
    assert "calls itself" in call.error.message


def test_descriptors_made_by_a_kernel_need_an_allocator_where_a_gpu_needs_one(recording):
    source = """
        @triton.jit
        def kernel(x_ptr, N, BLOCK: tl.constexpr):
            x = tl.make_tensor_descriptor(x_ptr, [N], [1], [BLOCK])
            x.store([0], x.load([0]))

        def entry(x):
            kernel[(1,)](x, 64, BLOCK=64)
            return x
    """
    allocator = "lambda size, align, stream: torch.empty(size, dtype=torch.int8, device='cuda')"
    with_one = source.replace("kernel[", f"triton.set_allocator({allocator})\n            kernel[")
    assert "Use triton.set_allocator" in recording(source)("entry", x=meta(64)).error.message
    assert recording(source, "sm_80")("entry", x=meta(64)).error is None
    call = recording(with_one)("entry", x=meta(64))
    assert call.error is None and len(call.buffers) == 1  # what the allocator gave is Triton's
    for wrong, said in (
        ("lambda size: None", "takes 1 positional argument but 3 were given"),
        ("lambda size, align, stream: None", "asked for 128 bytes on the GPU, and returns NoneType"),
        ("lambda size, align, stream: torch.empty(size)", "asked for 128 bytes on the GPU, and returns 512 on cpu"),
        ("lambda size, align, stream: torch.empty(4, device='cuda')", "and returns 16 on cuda"),
    ):
        assert said in recording(with_one.replace(allocator, wrong))("entry", x=meta(64)).error.message


def test_constants_of_each_kind_are_in_the_recipe(recording):
    source = """
        @triton.jit
        def double(x):
            return x + x

        @triton.jit
        def kernel(x_ptr, function: tl.constexpr, kind: tl.constexpr, name: tl.constexpr, sizes: tl.constexpr, flag):
            tl.store(x_ptr + tl.arange(0, sizes[0]), function(tl.load(x_ptr + tl.arange(0, sizes[1]))).to(kind))

        def entry(x):
            kernel[(1,)](x, double, tl.float16, "a", (64, 64), None)
            return x
    """
    recorded = recording(source)
    (kernel,) = recorded("entry", x=meta(64)).kernels
    constants = {tuple(path): value for path, value in kernel.recipe.constants}
    assert constants[(1,)] == {"function": ["double", recorded.line("def double") - 1]}
    assert constants[(2,)] == {"dtype": "fp16"}
    assert constants[(3,)] == {"value": "'a'"} and constants[(5,)] == {"value": "None"}
    assert constants[(4,)] == {"items": [{"value": "64"}, {"value": "64"}]}


@pytest.mark.parametrize("target", ["sm_80", "sm_90", "sm_100"])
def test_a_descriptor_made_by_the_host_is_one_parameter_with_its_sizes_behind_it(recording, target):
    source = """
        from triton.tools.tensor_descriptor import TensorDescriptor

        @triton.jit
        def copy_kernel(x, z, BLOCK: tl.constexpr):
            at = [tl.program_id(0) * BLOCK, tl.program_id(1) * BLOCK]
            z.store(at, x.load(at))

        def entry(x):
            z = torch.empty_like(x)
            copy_kernel[(2, 2)](
                TensorDescriptor.from_tensor(x[64:, 64:], [64, 64], padding="nan"),
                TensorDescriptor(z, [128, 100], [128, 1], [64, 64]), BLOCK=64)
            return z
    """
    call = recording(source, target)("entry", x=meta(128, 128, dtype=torch.float16))
    (launch,) = call.steps
    assert isinstance(launch, PlannedLaunch)
    x, z = launch.parameters[0], launch.parameters[5]
    assert (x.name, x.type, x.buffer, x.offset, x.view.shape) == ("x", "descriptor", 0, 2 * (64 * 128 + 64), [64, 64])
    assert (x.descriptor.element, x.descriptor.padding, x.descriptor.block) == ("fp16", "nan", [64, 64])
    assert (x.descriptor.shape, x.descriptor.strides) == ([64, 64], [128, 1])
    assert (z.descriptor.shape, z.view.shape, z.descriptor.padding) == ([128, 100], [128, 128], "zero")
    sizes = [(p.name, p.type, p.number) for p in launch.parameters[1:5]]
    assert sizes == [("x.shape", "i32", 64)] * 2 + [("x.strides", "i64", 128), ("x.strides", "i64", 1)]
    (said,) = re.findall(r"function_type = \((.*)\) -> \(\), sym_name", call.kernels[0].source)
    assert said.count(", ") + 1 == len(launch.parameters)
