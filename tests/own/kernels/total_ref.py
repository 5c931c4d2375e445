def total(x):
    return x.float().sum().reshape(1)


SHAPES = "M,N; M=1..20 N=1..200"
WRONG = {
    "no_atomic": (
        "tl.atomic_add(out_ptr, tl.sum(x, axis=0))",
        "tl.store(out_ptr, tl.load(out_ptr) + tl.sum(x, axis=0))",
    ),
    "begins_uninitialized": ("torch.zeros(1,", "torch.empty(1,"),
}
