"""Lists what can be wrong with a submission: the id of each failure, as `--result`, hints and mutants name it.

These ids suit any operation. A mistake of one exercise has its id in solutions/NN_name/mistakes.toml.
"""

from __future__ import annotations

from enum import StrEnum


class Cause(StrEnum):
    # The file as a whole.
    MISSING = "missing"
    NO_FILE = "no-file"
    UNREADABLE = "unreadable"
    TOO_LONG = "too-long"
    TOO_MANY_NODES = "too-many-nodes"
    ENCODING = "encoding"
    OTHER_ENCODING = "other-encoding"
    SYNTAX = "syntax"
    NESTED = "nested"
    IMPORT = "import"
    EXIT = "exit"
    MEMORY = "memory"
    LOAD = "load"
    NOT_ALLOWED = "not-allowed"
    FOREIGN_KERNEL = "foreign-kernel"
    FILES_CHANGED = "files-changed"
    FAULT = "fault"

    # A call that fails, or does not end properly.
    NO_ENTRY = "no-entry"
    ARITY = "arity"
    HOST = "host"
    KERNEL = "kernel"
    ASSERT = "assert"
    NOT_KNOWN = "not-known"
    ENDLESS = "endless"
    GRID = "grid"
    TIME_LIMIT = "time-limit"
    CRASH = "crash"
    PROCESS_EXIT = "process-exit"
    GARBLED = "garbled"
    LEFT_BEHIND = "left-behind"
    FOREIGN_MEMORY = "foreign-memory"

    # The host function: its work, its results, and what it changes or keeps.
    TORCH_DID_IT = "torch-did-it"
    NO_LAUNCH = "no-launch"
    WRONG_RESULT_TYPE = "wrong-result-type"
    INPUT_CHANGED = "input-changed"
    STATEFUL = "stateful"
    NOT_REFUSED = "not-refused"

    # An operator of torch: what is registered for it.
    NO_OPERATOR = "no-operator"
    NO_FORMULA = "no-formula"
    NO_FAKE = "no-fake"
    DECLARED_MUTATION = "declared-mutation"
    FAKE_LAUNCHES = "fake-launches"
    WRONG_FAKE = "wrong-fake"

    # The compiler, and the machine code that it makes.
    DOES_NOT_COMPILE = "does-not-compile"
    NOT_RECORDABLE = "not-recordable"
    DOES_NOT_FIT = "does-not-fit"
    SPILLS = "spills"
    SCALAR_ACCESS = "scalar-access"
    NOT_PIPELINED = "not-pipelined"
    NO_TENSOR_CORES = "no-tensor-cores"
    NO_DESCRIPTORS = "no-descriptors"

    # The configurations of an autotuned kernel, and the choice among them.
    NOT_TUNED = "not-tuned"
    WRONG_KEY = "wrong-key"
    FIXED_GRID = "fixed-grid"
    CHANGED_BY_TUNING = "changed-by-tuning"

    # Accesses to memory.
    OOB_LOAD = "oob-load"
    OOB_STORE = "oob-store"
    WILD_POINTER = "wild-pointer"
    MISALIGNED = "misaligned"
    DOUBLE_WRITE = "double-write"
    LANE_CONFLICT = "lane-conflict"
    RACE = "race"
    WARP_ORDER = "warp-order"
    COMPILER_RACE = "compiler-race"
    LOAD_AHEAD = "load-ahead"
    UNINITIALISED_READ = "uninitialised-read"
    NO_OTHER = "no-other"
    OFFSET_OVERFLOW = "offset-overflow"
    FALSE_PROMISE = "false-promise"
    LEFT_OPEN = "left-open"
    NOT_ZEROED = "not-zeroed"

    # Wrong values in a result of any operation.
    UNWRITTEN = "unwritten"
    UNCHANGED = "unchanged"
    UPDATED_TWICE = "updated-twice"
    CONSTANT = "constant"
    INPUT_PASSED_THROUGH = "input-passed-through"
    TRANSPOSED_RESULT = "transposed-result"
    STRIDE_IGNORED = "stride-ignored"
    STRIDES_SWAPPED = "strides-swapped"
    WRONG_OPERAND = "wrong-operand"
    WRONG_OPERATION = "wrong-operation"
    THROUGH_FP32 = "through-fp32"
    LOW_PRECISION = "low-precision"
    FLUSHED = "flushed"
    MISPLACED_TILE = "misplaced-tile"
    NOT_TURNED = "not-turned"
    LOCAL_LOAD = "local-load"
    WRONG_VALUES = "wrong-values"
    CARRIED_OVER = "carried-over"

    # Cost.
    TRAFFIC = "traffic"
    SCATTERED = "scattered"
    TOO_MANY_LAUNCHES = "too-many-launches"
    IDLE_ITERATIONS = "idle-iterations"
    TOO_MANY_PROGRAMS = "too-many-programs"
    TOO_FEW_PROGRAMS = "too-few-programs"
    TOO_MUCH_MEMORY = "too-much-memory"
    TOO_SLOW = "too-slow"

    # The answer of a function that measures.
    NO_SYNCHRONIZE = "no-synchronize"
    COMPILATION_TIMED = "compilation-timed"
    HOST_TIMED = "host-timed"
    HOST_GAP = "host-gap"
    WARM_CACHE = "warm-cache"
    ZERO_INPUTS = "zero-inputs"
    CLOCK_NOT_STEADY = "clock-not-steady"
    DISTURBED_ROUNDS = "disturbed-rounds"
    TOO_FEW_ROUNDS = "too-few-rounds"
    NOT_THE_MIDDLE = "not-the-middle"
    OTHER_WORK_TIMED = "other-work-timed"
    NOT_MEASURED = "not-measured"
    ENDLESS_MEASUREMENT = "endless-measurement"
    WRONG_TIME = "wrong-time"

    # On a GPU.
    WRONG_ON_GPU = "wrong-on-gpu"
    WRONG_WHILE_TIMED = "wrong-while-timed"
    DIFFERS_COMPILED = "differs-compiled"
    GPU_FAULT = "gpu-fault"
    GPU_HANGS = "gpu-hangs"

    # A test's own assertion, which need not be a failure of the submission.
    ASSERTION = "assertion"
