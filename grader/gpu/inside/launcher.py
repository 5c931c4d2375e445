"""Launches a plan's kernels through the CUDA driver, on the caller's buffers. Nothing of a submission is imported.

It follows the rules of Triton's own launcher, 3.6 to 3.9, whose numbers stand in wire/launch_abi.py: a warp has 32
threads; the kernel's shared memory is dynamic, and above 48 KiB a function has to be allowed that much; clusters are a
launch attribute, and the grid counts their blocks.
"""

from __future__ import annotations

import ctypes
import struct

from cuda.bindings import driver

from grader.gpu.plan import Plan, PlannedKernel, PlannedLaunch, PlannedParameter, TensorMap
from grader.wire.launch_abi import (
    DEFAULT_SHARED,
    LARGE_CLUSTER,
    SMALL_MAP_BIT,
    SMALL_MAP_BYTES,
    SMALL_MAP_DRIVER,
    WARP_SIZE,
)

C_TYPES = {
    "i1": ctypes.c_int8, "i8": ctypes.c_int8, "i16": ctypes.c_int16, "i32": ctypes.c_int32, "i64": ctypes.c_int64,
    "u1": ctypes.c_uint8, "u8": ctypes.c_uint8, "u16": ctypes.c_uint16, "u32": ctypes.c_uint32, "u64": ctypes.c_uint64,
    "fp32": ctypes.c_float, "f32": ctypes.c_float, "fp64": ctypes.c_double,
}  # fmt: skip


class DriverError(RuntimeError):
    """The CUDA driver refused a call; after a fault of a kernel all calls of the process fail."""


def checked(result: tuple):
    """Returns the values of a result of cuda.bindings, (error, values...); raises DriverError for an error.

    A single value is returned by itself.
    """
    error, *values = result
    if error != driver.CUresult.CUDA_SUCCESS:
        raise DriverError(error.name)
    return values[0] if len(values) == 1 else values


class Functions:
    """The kernels of a plan, loaded into the current context; `unload` frees them and their memory."""

    def __init__(self, plan: Plan):
        self.modules = [checked(driver.cuModuleLoadData(kernel.code)) for kernel in plan.kernels]
        self.functions = [_function(module, kernel) for module, kernel in zip(self.modules, plan.kernels)]

    def unload(self) -> None:
        for module in self.modules:
            checked(driver.cuModuleUnload(module))


def _function(module, kernel: PlannedKernel):
    function = checked(driver.cuModuleGetFunction(module, kernel.name.encode()))
    attribute = driver.CUfunction_attribute
    if kernel.shared > DEFAULT_SHARED:
        most = attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
        checked(driver.cuFuncSetAttribute(function, most, kernel.shared))
    if kernel.ctas == LARGE_CLUSTER:
        allowed = attribute.CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED
        checked(driver.cuFuncSetAttribute(function, allowed, 1))
    return function


class BoundLaunch:
    """A launch with the addresses of a set of buffers.

    `first`: it is the first launch of its call, and must not overlap the previous call.
    """

    def __init__(self, launch: PlannedLaunch, kernel: PlannedKernel, function, addresses: list[int], first: bool):
        self.kernel, self.function, self.grid = kernel, function, launch.grid
        values, types = zip(*(_value(parameter, addresses) for parameter in launch.parameters))
        self.parameters = (values, types)
        self.attributes = _attributes(kernel, dependent=kernel.dependent and not first)

    def enqueue(self, stream: int) -> None:
        threads, shared = WARP_SIZE * self.kernel.warps, self.kernel.shared
        if not self.attributes:
            checked(driver.cuLaunchKernel(self.function, *self.grid, threads, 1, 1, shared, stream, self.parameters, 0))
            return
        config = driver.CUlaunchConfig()
        config.gridDimX = self.grid[0] * self.kernel.ctas
        config.gridDimY, config.gridDimZ = self.grid[1:]
        config.blockDimX, config.blockDimY, config.blockDimZ = threads, 1, 1
        config.sharedMemBytes, config.hStream = shared, driver.CUstream(stream)
        config.attrs, config.numAttrs = self.attributes, len(self.attributes)
        checked(driver.cuLaunchKernelEx(config, self.function, self.parameters, 0))


def _value(parameter: PlannedParameter, addresses: list[int]) -> tuple[object, object]:
    """Returns (value, ctypes type) as cuda.bindings takes them; the type None stands for a structure, by value.

    A number of type fp16 or bf16 becomes its bits. Raises DriverError where the driver refuses a tensor map.
    """
    address = 0 if parameter.buffer < 0 else addresses[parameter.buffer] + parameter.offset
    if parameter.map is not None:
        return _tensor_map(parameter.map, parameter.name, address), None
    if parameter.type == "pointer":
        return address, ctypes.c_void_p
    number = float(parameter.value) if "f" in parameter.type else int(parameter.value)
    if parameter.type == "fp16":
        return struct.unpack("<H", struct.pack("<e", number))[0], ctypes.c_uint16
    if parameter.type == "bf16":
        return struct.unpack("<I", struct.pack("<f", number))[0] >> 16, ctypes.c_uint16
    return number, C_TYPES[parameter.type]


def _attributes(kernel: PlannedKernel, dependent: bool) -> list:
    names, attributes = driver.CUlaunchAttributeID, []

    def add(identity):
        attributes.append(driver.CUlaunchAttribute())
        attributes[-1].id = identity
        return attributes[-1].value

    if dependent:
        add(names.CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION).programmaticStreamSerializationAllowed = 1
    if kernel.cooperative:
        add(names.CU_LAUNCH_ATTRIBUTE_COOPERATIVE).cooperative = 1
    if kernel.ctas > 1:
        cluster = add(names.CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION).clusterDim
        cluster.x, cluster.y, cluster.z = kernel.ctas, 1, 1
        policy = driver.CUclusterSchedulingPolicy.CU_CLUSTER_SCHEDULING_POLICY_SPREAD
        add(names.CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE).clusterSchedulingPolicyPreference = policy
    return attributes


class _TensorMap(ctypes.Structure):
    _fields_ = [("words", ctypes.c_uint64 * 16)]


def _tensor_map(tiled: TensorMap, name: str, address: int) -> _TensorMap:
    """Returns a TMA descriptor, which lists the fastest dimension first. Raises DriverError. `name`: of the parameter.

    The driver requires it to be aligned to 64 bytes, which the objects of cuda.bindings are not, so this call goes to
    the driver's library itself.
    """
    library = ctypes.CDLL("libcuda.so.1")
    memory = ctypes.create_string_buffer(128 + 64)
    tensor_map = _TensorMap.from_buffer(memory, -ctypes.addressof(memory) % 64)
    rank, size = len(tiled.shape), tiled.element_bytes
    shape = tiled.shape[::-1]
    byte_strides = [stride * size for stride in tiled.strides[::-1]][1:]
    error = library.cuTensorMapEncodeTiled(
        ctypes.byref(tensor_map), ctypes.c_int(tiled.data_type), ctypes.c_uint32(rank), ctypes.c_void_p(address),
        (ctypes.c_uint64 * rank)(*shape), (ctypes.c_uint64 * rank)(*byte_strides),
        (ctypes.c_uint32 * rank)(*tiled.box[::-1]), (ctypes.c_uint32 * rank)(*[1] * rank),
        ctypes.c_int(0), ctypes.c_int(tiled.swizzle),  # no interleave
        ctypes.c_int(2), ctypes.c_int(1 if tiled.nan_padding else 0),  # promotion to 128 bytes in L2
    )  # fmt: skip
    if error:
        raise DriverError(f"cuTensorMapEncodeTiled: error {error} for {name}")
    extent = sum((length - 1) * stride for length, stride in zip(shape, [size, *byte_strides])) + 1
    if extent < SMALL_MAP_BYTES and checked(driver.cuDriverGetVersion()) <= SMALL_MAP_DRIVER:
        tensor_map.words[1] &= ~SMALL_MAP_BIT
    return tensor_map
