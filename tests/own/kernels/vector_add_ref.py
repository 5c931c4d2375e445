def add(x, y):
    return x + y


SHAPES = "N N"
WRONG = {
    "store_without_mask": ("x + y, mask=mask)", "x + y)"),
    "grid_rounds_down": (
        'triton.cdiv(n_elements, meta["BLOCK_SIZE"])',
        '(n_elements // meta["BLOCK_SIZE"] + 0 * n_elements)',
    ),
}
