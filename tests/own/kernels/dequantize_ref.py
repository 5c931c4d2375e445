def dequantize(q, scale):
    return q.float() * scale.repeat_interleave(32, dim=1)


SHAPES = "M,G*32:int8<127 M,G:fp32; M=1..20 G=1..6"
WRONG = {
    "a_group_is_a_column": ("col // GROUP", "col % GROUP % groups"),
    "scales_of_the_first_row": ("row * groups + col // GROUP", "col // GROUP"),
}
