import torch
import triton
import triton.language as tl

BLOCK_N = 1024

A0 = 1
A1 = 1
A2 = 1
A3 = 1
A4 = 1
A5 = 1
A6 = 1
A7 = 1
A8 = 1
A9 = 1
A10 = 1
A11 = 1
A12 = 1
A13 = 1
A14 = 1
A15 = 1
A16 = 1
A17 = 1
A18 = 1
A19 = 1
A20 = 1
A21 = 1
A22 = 1
A23 = 1
A24 = 1
A25 = 1
A26 = 1
A27 = 1
A28 = 1
A29 = 1
A30 = 1
A31 = 1
A32 = 1
A33 = 1
A34 = 1
A35 = 1
A36 = 1
A37 = 1
A38 = 1
A39 = 1
A40 = 1
A41 = 1
A42 = 1
A43 = 1
A44 = 1
A45 = 1
A46 = 1
A47 = 1
A48 = 1
A49 = 1
A50 = 1
A51 = 1
A52 = 1
A53 = 1
A54 = 1
A55 = 1
A56 = 1
A57 = 1
A58 = 1
A59 = 1
A60 = 1
A61 = 1
A62 = 1
A63 = 1
A64 = 1
A65 = 1
A66 = 1
A67 = 1
A68 = 1
A69 = 1
A70 = 1
A71 = 1
A72 = 1
A73 = 1
A74 = 1
A75 = 1
A76 = 1
A77 = 1
A78 = 1
A79 = 1
A80 = 1
A81 = 1
A82 = 1
A83 = 1
A84 = 1
A85 = 1
A86 = 1
A87 = 1
A88 = 1
A89 = 1
A90 = 1
A91 = 1
A92 = 1
A93 = 1
A94 = 1
A95 = 1
A96 = 1
A97 = 1
A98 = 1
A99 = 1
A100 = 1
A101 = 1
A102 = 1
A103 = 1
A104 = 1
A105 = 1
A106 = 1
A107 = 1
A108 = 1
A109 = 1
A110 = 1
A111 = 1
A112 = 1
A113 = 1
A114 = 1
A115 = 1
A116 = 1
A117 = 1
A118 = 1
A119 = 1
A120 = 1
A121 = 1
A122 = 1
A123 = 1
A124 = 1
A125 = 1
A126 = 1
A127 = 1
A128 = 1
A129 = 1
A130 = 1
A131 = 1
A132 = 1
A133 = 1
A134 = 1
A135 = 1
A136 = 1
A137 = 1
A138 = 1
A139 = 1
A140 = 1
A141 = 1
A142 = 1
A143 = 1
A144 = 1
A145 = 1
A146 = 1
A147 = 1
A148 = 1
A149 = 1
A150 = 1
A151 = 1
A152 = 1
A153 = 1
A154 = 1
A155 = 1
A156 = 1
A157 = 1
A158 = 1
A159 = 1
A160 = 1
A161 = 1
A162 = 1
A163 = 1
A164 = 1
A165 = 1
A166 = 1
A167 = 1
A168 = 1
A169 = 1
A170 = 1
A171 = 1
A172 = 1
A173 = 1
A174 = 1
A175 = 1
A176 = 1
A177 = 1
A178 = 1
A179 = 1
A180 = 1
A181 = 1
A182 = 1
A183 = 1
A184 = 1
A185 = 1
A186 = 1
A187 = 1
A188 = 1
A189 = 1
A190 = 1
A191 = 1
A192 = 1
A193 = 1
A194 = 1
A195 = 1
A196 = 1
A197 = 1
A198 = 1
A199 = 1
A200 = 1
A201 = 1
A202 = 1
A203 = 1
A204 = 1
A205 = 1
A206 = 1
A207 = 1
A208 = 1
A209 = 1
A210 = 1
A211 = 1
A212 = 1
A213 = 1
A214 = 1
A215 = 1
A216 = 1
A217 = 1
A218 = 1
A219 = 1
A220 = 1
A221 = 1
A222 = 1
A223 = 1
A224 = 1
A225 = 1
A226 = 1
A227 = 1
A228 = 1
A229 = 1
A230 = 1
A231 = 1
A232 = 1
A233 = 1
A234 = 1
A235 = 1
A236 = 1
A237 = 1
A238 = 1
A239 = 1
A240 = 1
A241 = 1
A242 = 1
A243 = 1
A244 = 1
A245 = 1
A246 = 1
A247 = 1
A248 = 1
A249 = 1
A250 = 1
A251 = 1
A252 = 1
A253 = 1
A254 = 1
A255 = 1
A256 = 1
A257 = 1
A258 = 1
A259 = 1
if True:
    @triton.jit
    def max(a, b):
        return a - b


@triton.jit
def masked_add_kernel(x_ptr, y_ptr, z_ptr, N, BLOCK_N: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    mask = offsets < N
    x = tl.load(x_ptr + offsets, mask=mask)
    y = tl.load(y_ptr + offsets, mask=mask)
    if BLOCK_N < 0:
        A0
        A1
        A2
        A3
        A4
        A5
        A6
        A7
        A8
        A9
        A10
        A11
        A12
        A13
        A14
        A15
        A16
        A17
        A18
        A19
        A20
        A21
        A22
        A23
        A24
        A25
        A26
        A27
        A28
        A29
        A30
        A31
        A32
        A33
        A34
        A35
        A36
        A37
        A38
        A39
        A40
        A41
        A42
        A43
        A44
        A45
        A46
        A47
        A48
        A49
        A50
        A51
        A52
        A53
        A54
        A55
        A56
        A57
        A58
        A59
        A60
        A61
        A62
        A63
        A64
        A65
        A66
        A67
        A68
        A69
        A70
        A71
        A72
        A73
        A74
        A75
        A76
        A77
        A78
        A79
        A80
        A81
        A82
        A83
        A84
        A85
        A86
        A87
        A88
        A89
        A90
        A91
        A92
        A93
        A94
        A95
        A96
        A97
        A98
        A99
        A100
        A101
        A102
        A103
        A104
        A105
        A106
        A107
        A108
        A109
        A110
        A111
        A112
        A113
        A114
        A115
        A116
        A117
        A118
        A119
        A120
        A121
        A122
        A123
        A124
        A125
        A126
        A127
        A128
        A129
        A130
        A131
        A132
        A133
        A134
        A135
        A136
        A137
        A138
        A139
        A140
        A141
        A142
        A143
        A144
        A145
        A146
        A147
        A148
        A149
        A150
        A151
        A152
        A153
        A154
        A155
        A156
        A157
        A158
        A159
        A160
        A161
        A162
        A163
        A164
        A165
        A166
        A167
        A168
        A169
        A170
        A171
        A172
        A173
        A174
        A175
        A176
        A177
        A178
        A179
        A180
        A181
        A182
        A183
        A184
        A185
        A186
        A187
        A188
        A189
        A190
        A191
        A192
        A193
        A194
        A195
        A196
        A197
        A198
        A199
        A200
        A201
        A202
        A203
        A204
        A205
        A206
        A207
        A208
        A209
        A210
        A211
        A212
        A213
        A214
        A215
        A216
        A217
        A218
        A219
        A220
        A221
        A222
        A223
        A224
        A225
        A226
        A227
        A228
        A229
        A230
        A231
        A232
        A233
        A234
        A235
        A236
        A237
        A238
        A239
        A240
        A241
        A242
        A243
        A244
        A245
        A246
        A247
        A248
        A249
        A250
        A251
        A252
        A253
        A254
        A255
        A256
        A257
        A258
        A259
    tl.store(z_ptr + offsets, max(x + y, x + y), mask=mask)



def masked_add(x, y):
    z = torch.empty_like(x)
    masked_add_kernel[(triton.cdiv(x.numel(), BLOCK_N),)](x, y, z, x.numel(), BLOCK_N=BLOCK_N)
    return z
