"""Lists what can be wrong with a submission: the id of each failure, as `--result`, hints and mutants name it, and
one sentence about it, which `course explain` and the site begin with.

These ids suit any operation. A mistake of one exercise has its id in solutions/NN_name/mistakes.toml.
"""

from __future__ import annotations

from enum import StrEnum


class Cause(StrEnum):
    meaning: str

    def __new__(cls, id: str, meaning: str) -> Cause:
        cause = str.__new__(cls, id)
        cause._value_ = id
        cause.meaning = meaning
        return cause

    # The file as a whole.
    MISSING = "missing", "The file that is to be judged is not there."
    NO_FILE = "no-file", "What is to be judged is no ordinary file, but a folder, a pipe or a device."
    UNREADABLE = "unreadable", "The file cannot be read."
    TOO_LONG = "too-long", "The file is larger than any file of kernels."
    TOO_MANY_NODES = "too-many-nodes", "The file holds more names, numbers and statements than any file of kernels."
    ENCODING = "encoding", "The file is not text in UTF-8."
    OTHER_ENCODING = "other-encoding", "A line of the file says that its text is not UTF-8."
    SYNTAX = "syntax", "The file is not valid Python."
    NESTED = "nested", "The file nests its parts deeper than the judge reads."
    IMPORT = "import", "The file imports what is not there, or what it may not have."
    EXIT = "exit", "The file ends the program instead of defining or returning something."
    MEMORY = "memory", "The file asks for more memory than it may use."
    LOAD = "load", "An import of the file raises an exception."
    NOT_ALLOWED = "not-allowed", "A kernel uses a name that no kernel may use."
    FOREIGN_KERNEL = "foreign-kernel", "A kernel is launched that does not stand in the file, as it stands there."
    FILES_CHANGED = "files-changed", "A call changes files of the exercise."
    FAULT = "fault", "The judge or the machine failed: this is no mistake of the file."

    # A call that fails, or does not end properly.
    NO_ENTRY = "no-entry", "The file does not define the function that the judge calls."
    ARITY = "arity", "The entry does not take the arguments that it is called with."
    HOST = "host", "The entry raises an exception."
    KERNEL = "kernel", "A kernel raises an exception."
    ASSERT = "assert", "A tl.device_assert does not hold."
    NOT_KNOWN = "not-known", "The kernel uses something that is not judged on this machine."
    ENDLESS = "endless", "The kernel does not come to an end."
    GRID = "grid", "A launch asks for more programs than can be carried out."
    TIME_LIMIT = "time-limit", "A call was stopped: it takes far longer than any right one."
    CRASH = "crash", "The process of the file crashed."
    PROCESS_EXIT = "process-exit", "The file ended its process in the middle of a call."
    GARBLED = "garbled", "The file left its process unable to answer."
    LEFT_BEHIND = "left-behind", "A call left processes running, or started too many."
    FOREIGN_MEMORY = "foreign-memory", "A launch gets memory that the call neither got nor allocated."

    # The host function: its work, its results, and what it changes or keeps.
    TORCH_DID_IT = "torch-did-it", "Torch does the kernel's work, or asks for values that only kernels see."
    NO_LAUNCH = "no-launch", "The entry returned without a launch of a kernel."
    WRONG_RESULT_TYPE = "wrong-result-type", "A result has the wrong type, shape, dtype or strides."
    INPUT_CHANGED = "input-changed", "An input is not what it was before the call."
    STATEFUL = "stateful", "A second call with the same inputs gives another result."
    NOT_REFUSED = "not-refused", "A call that is not promised did not end in the error that the lesson asks for."

    # An operator of torch: what is registered for it.
    NO_OPERATOR = "no-operator", "The file registers no operator of torch under the name that is asked for."
    NO_FORMULA = "no-formula", "The operator has no formula of autograd."
    NO_FAKE = "no-fake", "The operator has no fake, which tells torch.compile what the results look like."
    DECLARED_MUTATION = "declared-mutation", "The operator says that it changes its arguments, and it changes none."
    FAKE_LAUNCHES = "fake-launches", "With fakes in the place of operators, a kernel is still launched."
    WRONG_FAKE = "wrong-fake", "The fake computes, or tells results that the operator does not give."

    # The compiler, and the machine code that it makes.
    DOES_NOT_COMPILE = "does-not-compile", "The compiler refuses a kernel."
    NOT_RECORDABLE = "not-recordable", "A launch or a kernel has a form that the judge cannot record."
    DOES_NOT_FIT = "does-not-fit", "A kernel needs more registers, shared memory or threads than one block has."
    SPILLS = "spills", "A kernel holds more numbers than there are registers, and the rest goes through memory."
    SCALAR_ACCESS = "scalar-access", "Loads or stores move fewer bytes at a time than a thread can."
    NOT_PIPELINED = "not-pipelined", "The loads of a loop wait for memory: none runs ahead of its product."
    NO_TENSOR_CORES = "no-tensor-cores", "A product does not use the tensor cores as it should."
    NO_DESCRIPTORS = "no-descriptors", "A tile is moved by pointers where a descriptor is asked for."

    # The configurations of an autotuned kernel, and the choice among them.
    NOT_TUNED = "not-tuned", "The kernel has no choice of configurations, or does not choose as it is asked to."
    WRONG_KEY = "wrong-key", "One choice of a configuration serves calls for which different ones are best or right."
    FIXED_GRID = "fixed-grid", "The grid stays the same where configurations have other block sizes."
    CHANGED_BY_TUNING = "changed-by-tuning", "Trying the configurations changes the result."

    # Accesses to memory.
    OOB_LOAD = "oob-load", "A load reads outside of its tensor."
    OOB_STORE = "oob-store", "A store writes outside of its tensor."
    WILD_POINTER = "wild-pointer", "An address leads to no tensor at all."
    MISALIGNED = "misaligned", "An address lies in the middle of an element."
    DOUBLE_WRITE = "double-write", "Two programs store to the same element."
    LANE_CONFLICT = "lane-conflict", "Two lanes of one store write different values to the same element."
    RACE = "race", "Two programs touch the same element, and their order decides the result."
    WARP_ORDER = "warp-order", "The result depends on the order of the warps inside a program."
    COMPILER_RACE = "compiler-race", "The kernel is right, and the compiler's code overwrites a tile too early."
    LOAD_AHEAD = "load-ahead", "A load may run before the store of an earlier iteration that it needs."
    UNINITIALISED_READ = "uninitialised-read", "The kernel reads memory before anything was written there."
    NO_OTHER = "no-other", "Masked lanes of a load without `other` take part in a result."
    OFFSET_OVERFLOW = "offset-overflow", "An offset leaves the numbers that its type holds, most often int32."
    FALSE_PROMISE = "false-promise", "The kernel promises the compiler what does not hold."
    LEFT_OPEN = "left-open", "The result depends on what the language leaves open, such as an order."
    NOT_ZEROED = "not-zeroed", "Atomics add to memory that nobody has set to 0."

    # Wrong values in a result of any operation.
    UNWRITTEN = "unwritten", "Elements of the result are never written."
    UNCHANGED = "unchanged", "A result that has to be updated or filled still holds what it held before."
    UPDATED_TWICE = "updated-twice", "The update in place happens twice."
    CONSTANT = "constant", "The result is the same number everywhere."
    INPUT_PASSED_THROUGH = "input-passed-through", "The result is one of the inputs."
    TRANSPOSED_RESULT = "transposed-result", "Rows and columns of the result are exchanged."
    STRIDE_IGNORED = "stride-ignored", "A stride is not used: contiguous tensors alone come out right."
    STRIDES_SWAPPED = "strides-swapped", "Two strides are exchanged."
    WRONG_OPERAND = "wrong-operand", "One input stands in the place of another."
    WRONG_OPERATION = "wrong-operation", "The kernel computes another operation."
    THROUGH_FP32 = "through-fp32", "Values went through fp32, which does not hold every value of their dtype."
    LOW_PRECISION = "low-precision", "Digits are lost on the way: a step works with too few of them."
    FLUSHED = "flushed", "Small numbers became 0."
    MISPLACED_TILE = "misplaced-tile", "Tiles of the result are in the wrong place."
    NOT_TURNED = "not-turned", "A tile holds the right elements, but in the order in which they were loaded."
    LOCAL_LOAD = "local-load", "A load does not move with the program."
    WRONG_VALUES = "wrong-values", "Values are wrong, and no explanation fits."
    CARRIED_OVER = "carried-over", "A program that loops over tiles takes something of one tile into the next."

    # Cost.
    TRAFFIC = "traffic", "Memory is read or written more often than it has to be."
    SCATTERED = "scattered", "Loads or stores move many bytes of which few are used."
    TOO_MANY_LAUNCHES = "too-many-launches", "More kernels are launched than the operation needs."
    IDLE_ITERATIONS = "idle-iterations", "A loop has iterations that touch no memory."
    TOO_MANY_PROGRAMS = "too-many-programs", "Programs have nothing to do, or too little."
    TOO_FEW_PROGRAMS = "too-few-programs", "The grid has fewer programs than the GPU can run at the same time."
    TOO_MUCH_MEMORY = "too-much-memory", "The entry allocates more memory than there is room for."
    TOO_SLOW = "too-slow", "The kernel is right, and slower than the exercise asks for."

    # The answer of a function that measures.
    NO_SYNCHRONIZE = "no-synchronize", "The clock was read while the GPU was still at work."
    COMPILATION_TIMED = "compilation-timed", "The compilation of the kernel is part of what was measured."
    HOST_TIMED = "host-timed", "The time of the host is part of what was measured."
    HOST_GAP = "host-gap", "Between the two events the GPU waited for the host."
    WARM_CACHE = "warm-cache", "The launch found its data in the cache, left there by the work before it."
    ZERO_INPUTS = "zero-inputs", "The inputs were zeros, which need less power than numbers."
    CLOCK_NOT_STEADY = "clock-not-steady", "The clock of the GPU was still rising in the rounds that were measured."
    DISTURBED_ROUNDS = "disturbed-rounds", "Launches that something else disturbed are part of the answer."
    TOO_FEW_ROUNDS = "too-few-rounds", "Too few launches were timed."
    NOT_THE_MIDDLE = "not-the-middle", "The answer is not the middle of the launches that were timed."
    OTHER_WORK_TIMED = "other-work-timed", "Other work of the GPU is part of what was measured."
    NOT_MEASURED = "not-measured", "The answer was not measured: it does not come from launches that were timed."
    ENDLESS_MEASUREMENT = "endless-measurement", "The measurement does not come to an end."
    WRONG_TIME = "wrong-time", "The time is wrong even on a GPU where nothing makes measurements wrong."

    # On a GPU.
    WRONG_ON_GPU = "wrong-on-gpu", "Values are wrong on the GPU, and right where the call is carried out on the CPU."
    WRONG_WHILE_TIMED = "wrong-while-timed", "Values were wrong in the rounds that were timed."
    DIFFERS_COMPILED = "differs-compiled", "The entry returns a result of another kind when its kernels are compiled."
    GPU_FAULT = "gpu-fault", "The GPU stopped the kernel."
    GPU_HANGS = "gpu-hangs", "The kernel does not come to an end on the GPU."

    # A test's own assertion, which need not be a failure of the submission.
    ASSERTION = "assertion", "An assertion of the test does not hold."
