"""A filter of system calls around the child: Linux' seccomp, which needs no privileges and no library.

Landlock knows files, TCP and signals. The filter refuses the other ways out of a process: sockets of every kind, limits
and scheduling of others, owners and modes of files, System V shared memory, looking into other processes, mounts,
namespaces, keys. Calls that affect only the process itself stay allowed. A refused call answers EPERM.

The numbers of system calls differ by architecture. On an architecture that is not in the table there is no filter.
"""

from __future__ import annotations

import ctypes
import errno
import platform
import struct

SECCOMP = {"x86_64": 317, "aarch64": 277}  # the number of the system call seccomp itself
AUDIT_ARCH = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}  # linux/audit.h
SET_MODE_FILTER = 1
# For all threads, and without the slow-down that older kernels add to a filter unless they are told not to.
SYNCHRONISE, KEEP_SPEED = 1, 4
PR_SET_NO_NEW_PRIVS = 38

# name: (on x86-64, on aarch64), where it exists
REFUSED: dict[str, tuple[int | None, int | None]] = {
    # sockets of every kind, also what works on one that is open already
    "socket": (41, 198), "socketpair": (53, 199), "connect": (42, 203), "bind": (49, 200), "listen": (50, 201),
    "accept": (43, 202), "accept4": (288, 242), "sendto": (44, 206), "sendmsg": (46, 211), "sendmmsg": (307, 269),
    "recvfrom": (45, 207), "recvmsg": (47, 212), "recvmmsg": (299, 243), "shutdown": (48, 210),
    "getsockname": (51, 204), "getpeername": (52, 205), "setsockopt": (54, 208), "getsockopt": (55, 209),
    # what Landlock leaves open: a file's length before ABI 3, its owner, mode, times and attributes in any
    "truncate": (76, 45),
    "chmod": (90, None), "fchmod": (91, 52), "fchmodat": (268, 53), "fchmodat2": (452, 452),
    "chown": (92, None), "fchown": (93, 55), "lchown": (94, None), "fchownat": (260, 54),
    "utime": (132, None), "utimes": (235, None), "futimesat": (261, None), "utimensat": (280, 88),
    "setxattr": (188, 5), "lsetxattr": (189, 6), "fsetxattr": (190, 7), "setxattrat": (463, 463),
    "removexattr": (197, 14), "lremovexattr": (198, 15), "fremovexattr": (199, 16), "removexattrat": (466, 466),
    "file_setattr": (469, 469),
    # memory and queues that outlive who made them
    "shmget": (29, 194), "shmat": (30, 196), "shmctl": (31, 195), "shmdt": (67, 197),
    "semget": (64, 190), "semop": (65, 193), "semtimedop": (220, 192), "semctl": (66, 191),
    "msgget": (68, 186), "msgsnd": (69, 189), "msgrcv": (70, 188), "msgctl": (71, 187),
    "mq_open": (240, 180), "mq_unlink": (241, 181), "mq_timedsend": (242, 182), "mq_timedreceive": (243, 183),
    "mq_notify": (244, 184), "mq_getsetattr": (245, 185),
    # other processes: their memory, descriptors, pages and cores
    "ptrace": (101, 117), "process_vm_readv": (310, 270), "process_vm_writev": (311, 271),
    "process_madvise": (440, 440), "process_mrelease": (448, 448), "kcmp": (312, 272), "pidfd_open": (434, 434),
    "pidfd_getfd": (438, 438), "pidfd_send_signal": (424, 424), "migrate_pages": (256, 238), "move_pages": (279, 239),
    # ways into the kernel, some of them past this filter
    "io_uring_setup": (425, 425), "io_uring_enter": (426, 426), "io_uring_register": (427, 427), "bpf": (321, 280),
    "perf_event_open": (298, 241), "userfaultfd": (323, 282), "memfd_secret": (447, 447),
    "modify_ldt": (154, None), "personality": (135, 92), "uselib": (134, None), "iopl": (172, None),
    "ioperm": (173, None), "lookup_dcookie": (212, 18), "nfsservctl": (180, 42), "_sysctl": (156, None),
    # calls that tell of files that cannot be read
    "fanotify_init": (300, 262), "fanotify_mark": (301, 263), "inotify_init": (253, None), "inotify_init1": (294, 26),
    "inotify_add_watch": (254, 27), "name_to_handle_at": (303, 264), "open_by_handle_at": (304, 265),
    # mounts and namespaces
    "mount": (165, 40), "umount2": (166, 39), "pivot_root": (155, 41), "chroot": (161, 51), "move_mount": (429, 429),
    "open_tree": (428, 428), "open_tree_attr": (467, 467), "fsopen": (430, 430), "fsconfig": (431, 431),
    "fsmount": (432, 432), "fspick": (433, 433), "mount_setattr": (442, 442), "statmount": (457, 457),
    "listmount": (458, 458), "unshare": (272, 97), "setns": (308, 268),
    # keys
    "add_key": (248, 217), "request_key": (249, 218), "keyctl": (250, 219),
    # the machine as a whole
    "init_module": (175, 105), "finit_module": (313, 273), "delete_module": (176, 106), "kexec_load": (246, 104),
    "kexec_file_load": (320, 294), "reboot": (169, 142), "settimeofday": (164, 170), "clock_settime": (227, 112),
    "adjtimex": (159, 171), "clock_adjtime": (305, 266), "sethostname": (170, 161), "setdomainname": (171, 162),
    "syslog": (103, 116), "vhangup": (153, 58), "swapon": (167, 224), "swapoff": (168, 225), "acct": (163, 89),
    "quotactl": (179, 60), "quotactl_fd": (443, 443),
}  # fmt: skip
NEWEST_KNOWN = 469  # of the numbers that both share; a later call answers as on a kernel that does not have it
X32 = 0x4000_0000  # the numbers of a second set of calls on x86-64

# Calls that are refused unless these arguments are 0: "this process" for a process number, "of a process" for a kind.
ONLY_ON_ITSELF: dict[str, tuple[tuple[int, int], tuple[int, ...]]] = {
    "prlimit64": ((302, 261), (0,)),
    "sched_setaffinity": ((203, 122), (0,)), "sched_setscheduler": ((144, 119), (0,)),
    "sched_setparam": ((142, 118), (0,)), "sched_setattr": ((314, 274), (0,)),
    "setpriority": ((141, 140), (0, 1)),
}  # fmt: skip
IOPRIO_SET, IOPRIO_OF_A_PROCESS = (251, 30), 1
# A process may share its memory between threads, but not choose its parent or its namespaces: linux/sched.h.
CLONE, CLONE_PARENT, CLONE_NEW = (56, 220), 0x8000, 0x7E02_0000
CLONE3 = (435, 435)  # its flags lie in memory, where no filter looks; after ENOSYS libraries use clone
PRCTL, PR_SET_CHILD_SUBREAPER = (157, 167), 36
# Questions about a terminal or a pipe, and settings of the process's own descriptor: asm-generic/ioctls.h.
IOCTL = (16, 29)
IOCTLS = {
    "TCGETS": 0x5401, "TIOCGWINSZ": 0x5413, "FIONREAD": 0x541B, "FIONBIO": 0x5421, "FIONCLEX": 0x5450,
    "FIOCLEX": 0x5451, "TCGETS2": 0x802C542A,
}  # fmt: skip
# A lease, a notice or a signal for a descriptor holds up, or reaches, other processes: linux/fcntl.h.
FCNTL = (72, 25)
FCNTL_REFUSED = {"F_SETOWN": 8, "F_SETSIG": 10, "F_SETOWN_EX": 15, "F_SETLEASE": 1024, "F_NOTIFY": 1026}
# Emptying a file by opening it, which Landlock knows only since Linux 6.2 and takes for reading before. The flags of
# openat2 lie in memory; after ENOSYS libraries use openat.
OPEN: tuple[int, int | None] = (2, None)
OPENAT, OPENAT2 = (257, 56), (437, 437)
WRITE_ONLY_OR_BOTH, TRUNCATE = 0o3, 0o1000
# These answer as if they had been done. Programs that begin a session for what they start go on, and all that a child
# starts stays in its process group, so that one signal ends all of them at the same moment.
WITHOUT_EFFECT = {"setsid": (112, 157), "setpgid": (109, 154)}

# Classic BPF, linux/bpf_common.h: load a word, compare, end with an answer.
LOAD, EQUAL, GREATER, NOT_BELOW, ANY_BIT, RETURN = 0x20, 0x15, 0x25, 0x35, 0x45, 0x06
NUMBER_AT, ARCHITECTURE_AT, ARGUMENTS_AT = 0, 4, 16  # in struct seccomp_data; the low half of an argument comes first
ALLOW, ERRNO = 0x7FFF_0000, 0x0005_0000
INSTRUCTION = struct.Struct("=HBBI")
Instruction = tuple[int, int, int, int]  # what it does, steps to skip where it holds and where not, a number


class _Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("instructions", ctypes.c_char_p)]


def close() -> bool:
    """Installs the filter for this process and all that it starts, for good. Returns False where there is none."""
    if MACHINE not in SECCOMP:
        return False
    program = _Program(len(PROGRAM) // INSTRUCTION.size, PROGRAM)
    LIBC.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    flags = ctypes.c_ulong(SYNCHRONISE | KEEP_SPEED)
    failed: int = LIBC.syscall(SECCOMP[MACHINE], ctypes.c_ulong(SET_MODE_FILTER), flags, ctypes.byref(program))
    return failed == 0


def program(machine: str) -> bytes:
    """Returns the filter's instructions for "x86_64" or "aarch64"."""
    which = list(SECCOMP).index(machine)
    refused = sorted(number for numbers in REFUSED.values() if (number := numbers[which]) is not None)
    steps = [(LOAD, 0, 0, ARCHITECTURE_AT), (EQUAL, 1, 0, AUDIT_ARCH[machine]), _answer(errno.EPERM)]
    steps += [(LOAD, 0, 0, NUMBER_AT), (NOT_BELOW, 0, 1, X32), _answer(errno.EPERM)]
    steps += [(GREATER, 0, 1, NEWEST_KNOWN), _answer(errno.ENOSYS)]
    for number in refused:
        steps += _for_call(number, [_answer(errno.EPERM)])
    for numbers in WITHOUT_EFFECT.values():
        steps += _for_call(numbers[which], [_answer(0)])
    steps += _for_call(CLONE3[which], [_answer(errno.ENOSYS)])
    for numbers, arguments in ONLY_ON_ITSELF.values():
        steps += _for_call(numbers[which], _unless(arguments, [0]))
    steps += _for_call(IOPRIO_SET[which], _unless((0,), [IOPRIO_OF_A_PROCESS]) + _unless((1,), [0]))
    steps += _for_call(CLONE[which], _if(ANY_BIT, CLONE_PARENT | CLONE_NEW))
    steps += _for_call(PRCTL[which], _if(EQUAL, PR_SET_CHILD_SUBREAPER))
    steps += _for_call(IOCTL[which], _unless((1,), list(IOCTLS.values())))
    steps += _for_call(FCNTL[which], [_argument(1), *_refused_if_one_of(list(FCNTL_REFUSED.values()))])
    steps += _for_call(OPENAT2[which], [_answer(errno.ENOSYS)])
    for opening, flags in ((OPEN[which], 1), (OPENAT[which], 2)):
        if opening is not None:
            steps += _for_call(opening, _unless_written(flags))
    return b"".join(INSTRUCTION.pack(*step) for step in [*steps, (RETURN, 0, 0, ALLOW)])


def _answer(error: int) -> Instruction:
    return RETURN, 0, 0, ERRNO | error


def _for_call(number: int, steps: list[Instruction]) -> list[Instruction]:
    """Returns the steps for this call alone, then a step that loads the call's number for the next comparison."""
    again = [] if steps[-1][0] == RETURN and len(steps) == 1 else [(LOAD, 0, 0, NUMBER_AT)]
    return [(EQUAL, 0, len(steps) + len(again), number), *steps, *again]


def _if(comparison: int, value: int) -> list[Instruction]:
    """Returns steps that refuse a call whose first argument satisfies the comparison with this value."""
    return [_argument(0), (comparison, 0, 1, value), _answer(errno.EPERM)]


def _argument(number: int) -> Instruction:
    return LOAD, 0, 0, ARGUMENTS_AT + 8 * number


def _refused_if_one_of(values: list[int]) -> list[Instruction]:
    return [step for value in values for step in ((EQUAL, 0, 1, value), _answer(errno.EPERM))]


def _unless_written(flags: int) -> list[Instruction]:
    """Returns steps that refuse to empty a file opened for reading alone; `flags`: the argument's number."""
    return [
        _argument(flags), (ANY_BIT, 0, 2, TRUNCATE), (ANY_BIT, 1, 0, WRITE_ONLY_OR_BOTH), _answer(errno.EPERM),
    ]  # fmt: skip


def _unless(arguments: tuple[int, ...], values: list[int]) -> list[Instruction]:
    """Returns steps that refuse a call unless each of these arguments has one of the values."""
    steps = []
    for argument in arguments:
        steps += [_argument(argument)]
        steps += [(EQUAL, len(values) - place, 0, value) for place, value in enumerate(values)]
        steps += [_answer(errno.EPERM)]
    return steps


# Made when this is imported, once for all the children that a process forks.
LIBC = ctypes.CDLL(None, use_errno=True)
MACHINE = platform.machine()
PROGRAM = program(MACHINE) if MACHINE in SECCOMP else b""
