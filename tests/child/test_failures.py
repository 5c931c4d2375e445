"""What goes wrong in a learner's file becomes a Failure with a kind, a message and a line."""

import torch

from tests.waiting import until

X = torch.arange(8.0)


def failed(reply):
    assert reply.error is not None
    return reply.error["kind"], reply.error["type"], reply.error["line"]


def test_ready_says_the_versions(fresh_child):
    assert set(fresh_child.triton_server.versions) == {"python", "torch", "triton", "numpy"}


def test_files_that_do_not_load(child):
    assert failed(child.load("x = = 1")) == ("syntax", "SyntaxError", child.line("x = = 1"))
    assert failed(child.load("import nothing_of_that_name")) == ("import", "ModuleNotFoundError", 4)
    assert failed(child.load("import sys\nsys.exit(0)")) == ("exit", "SystemExit", 5)
    assert failed(child.load("raise KeyboardInterrupt")) == ("load", "KeyboardInterrupt", 4)
    assert failed(child.load("1 / 0")) == ("load", "ZeroDivisionError", 4)
    assert failed(child.load("torch.empty(1 << 44)"))[0] == "memory"
    assert failed(child.load("b = bytearray(8 << 30)"))[:2] == ("memory", "MemoryError")
    assert failed(child.load(b"# \xff\n"))[0] == "encoding"
    assert child.load("def entry(x):\n    return x").error is None


def test_the_folder_is_not_on_the_path(child):
    assert child.load("OTHER = 1", filename="other.py").error is None
    child.load("import sys\ndef entry(x):\n    assert '' not in sys.path and torch.os.getcwd() not in sys.path")
    assert child.run("entry", x=X).error is None


HOST = """
import sys

def wrong(x):
    return x.shap

def leave(x):
    sys.exit(3)

def deep(x):
    return deep(x)

def interrupted(x):
    raise KeyboardInterrupt

def hungry(x):
    return torch.empty(1 << 44)

def hungry_on_the_gpu(x):
    return torch.empty(1 << 44, device='cuda')

def complex_number(x):
    return torch.empty(4, device="cuda").fill_(1j)

def gpu(x):
    return torch.empty(4, device="cuda")

def two(x, y):
    return x
"""


def test_the_host_function_fails(child):
    child.load(HOST)
    assert failed(child.run("wrong", x=X)) == ("host", "AttributeError", child.line("x.shap"))
    assert failed(child.run("leave", x=X)) == ("exit", "SystemExit", child.line("sys.exit(3)"))
    assert failed(child.run("deep", x=X)) == ("host", "RecursionError", child.line("return deep(x)"))
    assert failed(child.run("interrupted", x=X))[:2] == ("host", "KeyboardInterrupt")
    assert failed(child.run("hungry", x=X))[0] == "memory"
    assert failed(child.run("hungry_on_the_gpu", x=X))[0] == "not-recordable"
    assert "complex number cannot fill" in child.run("complex_number", x=X).error["message"]
    assert child.run("gpu", x=X).error is None


def test_no_entry_and_wrong_arity(child):
    child.load(HOST)
    assert failed(child.run("softmax", x=X))[0] == "no-entry"
    reply = child.run("two", x=X)
    assert failed(reply)[0] == "arity"
    assert reply.error["message"] == "two takes 2 arguments, the grader calls it with 1"


KERNELS = """
@triton.jit
def undefined_kernel(z_ptr):
    tl.store(z_ptr, nothing_of_that_name)

@triton.jit
def helper(x):
    return x + tl.arange(0, 3)

@triton.jit
def nested_kernel(z_ptr):
    tl.store(z_ptr + 100, 1.0)
    y = helper(tl.program_id(0))

def undefined(x):
    undefined_kernel[(1,)](x)

def nested(x):
    nested_kernel[(1,)](x)

def missing_argument(x):
    undefined_kernel[(1,)]()
"""


def test_the_kernel_fails(child):
    child.load(KERNELS)
    reply = child.run("undefined", x=X)
    assert failed(reply) == ("compile", "NameError", child.line("nothing_of_that_name"))
    assert reply.error["kernel"] == "undefined_kernel" and "nothing_of_that_name" in reply.error["message"]
    reply = child.run("nested", x=X)
    assert failed(reply) == ("compile", "ValueError", child.line("tl.arange(0, 3)"))
    assert failed(child.run("missing_argument", x=X)) == ("host", "TypeError", child.line("undefined_kernel[(1,)]()"))


def test_results(child):
    child.load("""
        def nothing(x):
            pass

        def pair(x):
            return x, x

        def itself(x):
            return x

        def view(x):
            return x.view(2, 4).t()

        def on_the_cpu(x):
            return torch.empty(3)

        def part(x):
            return torch.zeros(1000, device='cuda')[10:12]
    """)

    def result(entry):
        return child.run(entry, x=X).result

    assert result("nothing") == dict(type="NoneType", same_as="", shares_with="", device="", dtype="", line=0)
    assert result("pair")["type"] == "tuple"
    itself = dict(type="Tensor", same_as="x", shares_with="x", device="cuda", dtype="float32", line=0)
    assert result("itself") == itself
    assert result("view") == itself | dict(same_as="")
    assert result("on_the_cpu")["device"] == "cpu"
    assert torch.equal(child.run("view", x=X).output, X.view(2, 4).t())
    assert result("part")["line"] == child.line("torch.zeros(1000")
    reply = child.run("part", x=X)
    assert reply.output.tolist() == [0, 0] and reply.outputs[0]["size"] == 8  # not the whole storage


def test_what_is_left_behind(fresh_child):
    fresh_child.load("""
        import subprocess

        def process(x):
            x.left = subprocess.Popen(["sleep", "20"])
            globals()["kept"] = x.left
            return x

        def stop(x):
            kept.kill()
            kept.wait()
    """)
    reply = fresh_child.run("process", x=X)
    assert reply.processes == 1
    fresh_child.run("stop", x=X)


def test_print_does_not_disturb_the_frames(fresh_child):
    fresh_child.load("""
        import os, sys
        print("at load")

        def entry(x):
            for _ in range(2000):
                print("x" * 500)
            os.write(1, b"raw")
            os.write(2, b"raw")
            sys.stdout.close()
            sys.stdout = None
            return x
    """)
    assert fresh_child.run("entry", x=X).error is None
    assert fresh_child.run("entry", x=X).error["type"] != ""  # stdout is closed: the learner's problem
    # A thread of the parent's reads it, when it is given a core.
    until(lambda: fresh_child.process.printed_bytes > 1_000_000, lambda: fresh_child.process.printed_bytes)


def test_files_are_limited(child):
    child.load("""
        def entry(x):
            with open("large", "wb") as file:
                file.write(bytes(100 << 20))
    """)
    assert failed(child.run("entry", x=X))[:2] == ("host", "OSError")
