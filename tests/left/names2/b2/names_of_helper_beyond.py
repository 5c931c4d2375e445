import torch
import triton
import triton.language as tl

BLOCK_N = 1024

@triton.jit
def h0(a):
    return a

@triton.jit
def h1(a):
    return a

@triton.jit
def h2(a):
    return a

@triton.jit
def h3(a):
    return a

@triton.jit
def h4(a):
    return a

@triton.jit
def h5(a):
    return a

@triton.jit
def h6(a):
    return a

@triton.jit
def h7(a):
    return a

@triton.jit
def h8(a):
    return a

@triton.jit
def h9(a):
    return a

@triton.jit
def h10(a):
    return a

@triton.jit
def h11(a):
    return a

@triton.jit
def h12(a):
    return a

@triton.jit
def h13(a):
    return a

@triton.jit
def h14(a):
    return a

@triton.jit
def h15(a):
    return a

@triton.jit
def h16(a):
    return a

@triton.jit
def h17(a):
    return a

@triton.jit
def h18(a):
    return a

@triton.jit
def h19(a):
    return a

@triton.jit
def h20(a):
    return a

@triton.jit
def h21(a):
    return a

@triton.jit
def h22(a):
    return a

@triton.jit
def h23(a):
    return a

@triton.jit
def h24(a):
    return a

@triton.jit
def h25(a):
    return a

@triton.jit
def h26(a):
    return a

@triton.jit
def h27(a):
    return a

@triton.jit
def h28(a):
    return a

@triton.jit
def h29(a):
    return a

@triton.jit
def h30(a):
    return a

@triton.jit
def h31(a):
    return a

@triton.jit
def h32(a):
    return a

@triton.jit
def h33(a):
    return a

@triton.jit
def h34(a):
    return a

@triton.jit
def h35(a):
    return a

@triton.jit
def h36(a):
    return a

@triton.jit
def h37(a):
    return a

@triton.jit
def h38(a):
    return a

@triton.jit
def h39(a):
    return a

@triton.jit
def h40(a):
    return a

@triton.jit
def h41(a):
    return a

@triton.jit
def h42(a):
    return a

@triton.jit
def h43(a):
    return a

@triton.jit
def h44(a):
    return a

@triton.jit
def h45(a):
    return a

@triton.jit
def h46(a):
    return a

@triton.jit
def h47(a):
    return a

@triton.jit
def h48(a):
    return a

@triton.jit
def h49(a):
    return a

@triton.jit
def h50(a):
    return a

@triton.jit
def h51(a):
    return a

@triton.jit
def h52(a):
    return a

@triton.jit
def h53(a):
    return a

@triton.jit
def h54(a):
    return a

@triton.jit
def h55(a):
    return a

@triton.jit
def h56(a):
    return a

@triton.jit
def h57(a):
    return a

@triton.jit
def h58(a):
    return a

@triton.jit
def h59(a):
    return a

@triton.jit
def h60(a):
    return a

@triton.jit
def h61(a):
    return a

@triton.jit
def h62(a):
    return a

@triton.jit
def h63(a):
    return a

@triton.jit
def h64(a):
    return a

@triton.jit
def h65(a):
    return a

@triton.jit
def h66(a):
    return a

@triton.jit
def h67(a):
    return a

@triton.jit
def h68(a):
    return a

@triton.jit
def h69(a):
    return a

@triton.jit
def h70(a):
    return a

@triton.jit
def h71(a):
    return a

@triton.jit
def h72(a):
    return a

@triton.jit
def h73(a):
    return a

@triton.jit
def h74(a):
    return a

@triton.jit
def h75(a):
    return a

@triton.jit
def h76(a):
    return a

@triton.jit
def h77(a):
    return a

@triton.jit
def h78(a):
    return a

@triton.jit
def h79(a):
    return a

@triton.jit
def h80(a):
    return a

@triton.jit
def h81(a):
    return a

@triton.jit
def h82(a):
    return a

@triton.jit
def h83(a):
    return a

@triton.jit
def h84(a):
    return a

@triton.jit
def h85(a):
    return a

@triton.jit
def h86(a):
    return a

@triton.jit
def h87(a):
    return a

@triton.jit
def h88(a):
    return a

@triton.jit
def h89(a):
    return a

@triton.jit
def h90(a):
    return a

@triton.jit
def h91(a):
    return a

@triton.jit
def h92(a):
    return a

@triton.jit
def h93(a):
    return a

@triton.jit
def h94(a):
    return a

@triton.jit
def h95(a):
    return a

@triton.jit
def h96(a):
    return a

@triton.jit
def h97(a):
    return a

@triton.jit
def h98(a):
    return a

@triton.jit
def h99(a):
    return a

@triton.jit
def h100(a):
    return a

@triton.jit
def h101(a):
    return a

@triton.jit
def h102(a):
    return a

@triton.jit
def h103(a):
    return a

@triton.jit
def h104(a):
    return a

@triton.jit
def h105(a):
    return a

@triton.jit
def h106(a):
    return a

@triton.jit
def h107(a):
    return a

@triton.jit
def h108(a):
    return a

@triton.jit
def h109(a):
    return a

@triton.jit
def h110(a):
    return a

@triton.jit
def h111(a):
    return a

@triton.jit
def h112(a):
    return a

@triton.jit
def h113(a):
    return a

@triton.jit
def h114(a):
    return a

@triton.jit
def h115(a):
    return a

@triton.jit
def h116(a):
    return a

@triton.jit
def h117(a):
    return a

@triton.jit
def h118(a):
    return a

@triton.jit
def h119(a):
    return a

@triton.jit
def h120(a):
    return a

@triton.jit
def h121(a):
    return a

@triton.jit
def h122(a):
    return a

@triton.jit
def h123(a):
    return a

@triton.jit
def h124(a):
    return a

@triton.jit
def h125(a):
    return a

@triton.jit
def h126(a):
    return a

@triton.jit
def h127(a):
    return a

@triton.jit
def h128(a):
    return a

@triton.jit
def h129(a):
    return a

@triton.jit
def h130(a):
    return a

@triton.jit
def h131(a):
    return a

@triton.jit
def h132(a):
    return a

@triton.jit
def h133(a):
    return a

@triton.jit
def h134(a):
    return a

@triton.jit
def h135(a):
    return a

@triton.jit
def h136(a):
    return a

@triton.jit
def h137(a):
    return a

@triton.jit
def h138(a):
    return a

@triton.jit
def h139(a):
    return a

@triton.jit
def h140(a):
    return a

@triton.jit
def h141(a):
    return a

@triton.jit
def h142(a):
    return a

@triton.jit
def h143(a):
    return a

@triton.jit
def h144(a):
    return a

@triton.jit
def h145(a):
    return a

@triton.jit
def h146(a):
    return a

@triton.jit
def h147(a):
    return a

@triton.jit
def h148(a):
    return a

@triton.jit
def h149(a):
    return a

@triton.jit
def h150(a):
    return a

@triton.jit
def h151(a):
    return a

@triton.jit
def h152(a):
    return a

@triton.jit
def h153(a):
    return a

@triton.jit
def h154(a):
    return a

@triton.jit
def h155(a):
    return a

@triton.jit
def h156(a):
    return a

@triton.jit
def h157(a):
    return a

@triton.jit
def h158(a):
    return a

@triton.jit
def h159(a):
    return a

@triton.jit
def h160(a):
    return a

@triton.jit
def h161(a):
    return a

@triton.jit
def h162(a):
    return a

@triton.jit
def h163(a):
    return a

@triton.jit
def h164(a):
    return a

@triton.jit
def h165(a):
    return a

@triton.jit
def h166(a):
    return a

@triton.jit
def h167(a):
    return a

@triton.jit
def h168(a):
    return a

@triton.jit
def h169(a):
    return a

@triton.jit
def h170(a):
    return a

@triton.jit
def h171(a):
    return a

@triton.jit
def h172(a):
    return a

@triton.jit
def h173(a):
    return a

@triton.jit
def h174(a):
    return a

@triton.jit
def h175(a):
    return a

@triton.jit
def h176(a):
    return a

@triton.jit
def h177(a):
    return a

@triton.jit
def h178(a):
    return a

@triton.jit
def h179(a):
    return a

@triton.jit
def h180(a):
    return a

@triton.jit
def h181(a):
    return a

@triton.jit
def h182(a):
    return a

@triton.jit
def h183(a):
    return a

@triton.jit
def h184(a):
    return a

@triton.jit
def h185(a):
    return a

@triton.jit
def h186(a):
    return a

@triton.jit
def h187(a):
    return a

@triton.jit
def h188(a):
    return a

@triton.jit
def h189(a):
    return a

@triton.jit
def h190(a):
    return a

@triton.jit
def h191(a):
    return a

@triton.jit
def h192(a):
    return a

@triton.jit
def h193(a):
    return a

@triton.jit
def h194(a):
    return a

@triton.jit
def h195(a):
    return a

@triton.jit
def h196(a):
    return a

@triton.jit
def h197(a):
    return a

@triton.jit
def h198(a):
    return a

@triton.jit
def h199(a):
    return a

@triton.jit
def h200(a):
    return a

@triton.jit
def h201(a):
    return a

@triton.jit
def h202(a):
    return a

@triton.jit
def h203(a):
    return a

@triton.jit
def h204(a):
    return a

@triton.jit
def h205(a):
    return a

@triton.jit
def h206(a):
    return a

@triton.jit
def h207(a):
    return a

@triton.jit
def h208(a):
    return a

@triton.jit
def h209(a):
    return a

@triton.jit
def h210(a):
    return a

@triton.jit
def h211(a):
    return a

@triton.jit
def h212(a):
    return a

@triton.jit
def h213(a):
    return a

@triton.jit
def h214(a):
    return a

@triton.jit
def h215(a):
    return a

@triton.jit
def h216(a):
    return a

@triton.jit
def h217(a):
    return a

@triton.jit
def h218(a):
    return a

@triton.jit
def h219(a):
    return a

@triton.jit
def h220(a):
    return a

@triton.jit
def h221(a):
    return a

@triton.jit
def h222(a):
    return a

@triton.jit
def h223(a):
    return a

@triton.jit
def h224(a):
    return a

@triton.jit
def h225(a):
    return a

@triton.jit
def h226(a):
    return a

@triton.jit
def h227(a):
    return a

@triton.jit
def h228(a):
    return a

@triton.jit
def h229(a):
    return a

@triton.jit
def h230(a):
    return a

@triton.jit
def h231(a):
    return a

@triton.jit
def h232(a):
    return a

@triton.jit
def h233(a):
    return a

@triton.jit
def h234(a):
    return a

@triton.jit
def h235(a):
    return a

@triton.jit
def h236(a):
    return a

@triton.jit
def h237(a):
    return a

@triton.jit
def h238(a):
    return a

@triton.jit
def h239(a):
    return a

@triton.jit
def h240(a):
    return a

@triton.jit
def h241(a):
    return a

@triton.jit
def h242(a):
    return a

@triton.jit
def h243(a):
    return a

@triton.jit
def h244(a):
    return a

@triton.jit
def h245(a):
    return a

@triton.jit
def h246(a):
    return a

@triton.jit
def h247(a):
    return a

@triton.jit
def h248(a):
    return a

@triton.jit
def h249(a):
    return a

@triton.jit
def h250(a):
    return a

@triton.jit
def h251(a):
    return a

@triton.jit
def h252(a):
    return a

@triton.jit
def h253(a):
    return a

@triton.jit
def h254(a):
    return a

if BLOCK_N:
    @triton.jit
    def max(a, b):
        return a - b
@triton.jit
def added(a, b):
    return max(a + b, a + b)


@triton.jit
def masked_add_kernel(x_ptr, y_ptr, z_ptr, N, BLOCK_N: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    mask = offsets < N
    x = tl.load(x_ptr + offsets, mask=mask)
    y = tl.load(y_ptr + offsets, mask=mask)
    if BLOCK_N < 0:
        h0(x)
        h1(x)
        h2(x)
        h3(x)
        h4(x)
        h5(x)
        h6(x)
        h7(x)
        h8(x)
        h9(x)
        h10(x)
        h11(x)
        h12(x)
        h13(x)
        h14(x)
        h15(x)
        h16(x)
        h17(x)
        h18(x)
        h19(x)
        h20(x)
        h21(x)
        h22(x)
        h23(x)
        h24(x)
        h25(x)
        h26(x)
        h27(x)
        h28(x)
        h29(x)
        h30(x)
        h31(x)
        h32(x)
        h33(x)
        h34(x)
        h35(x)
        h36(x)
        h37(x)
        h38(x)
        h39(x)
        h40(x)
        h41(x)
        h42(x)
        h43(x)
        h44(x)
        h45(x)
        h46(x)
        h47(x)
        h48(x)
        h49(x)
        h50(x)
        h51(x)
        h52(x)
        h53(x)
        h54(x)
        h55(x)
        h56(x)
        h57(x)
        h58(x)
        h59(x)
        h60(x)
        h61(x)
        h62(x)
        h63(x)
        h64(x)
        h65(x)
        h66(x)
        h67(x)
        h68(x)
        h69(x)
        h70(x)
        h71(x)
        h72(x)
        h73(x)
        h74(x)
        h75(x)
        h76(x)
        h77(x)
        h78(x)
        h79(x)
        h80(x)
        h81(x)
        h82(x)
        h83(x)
        h84(x)
        h85(x)
        h86(x)
        h87(x)
        h88(x)
        h89(x)
        h90(x)
        h91(x)
        h92(x)
        h93(x)
        h94(x)
        h95(x)
        h96(x)
        h97(x)
        h98(x)
        h99(x)
        h100(x)
        h101(x)
        h102(x)
        h103(x)
        h104(x)
        h105(x)
        h106(x)
        h107(x)
        h108(x)
        h109(x)
        h110(x)
        h111(x)
        h112(x)
        h113(x)
        h114(x)
        h115(x)
        h116(x)
        h117(x)
        h118(x)
        h119(x)
        h120(x)
        h121(x)
        h122(x)
        h123(x)
        h124(x)
        h125(x)
        h126(x)
        h127(x)
        h128(x)
        h129(x)
        h130(x)
        h131(x)
        h132(x)
        h133(x)
        h134(x)
        h135(x)
        h136(x)
        h137(x)
        h138(x)
        h139(x)
        h140(x)
        h141(x)
        h142(x)
        h143(x)
        h144(x)
        h145(x)
        h146(x)
        h147(x)
        h148(x)
        h149(x)
        h150(x)
        h151(x)
        h152(x)
        h153(x)
        h154(x)
        h155(x)
        h156(x)
        h157(x)
        h158(x)
        h159(x)
        h160(x)
        h161(x)
        h162(x)
        h163(x)
        h164(x)
        h165(x)
        h166(x)
        h167(x)
        h168(x)
        h169(x)
        h170(x)
        h171(x)
        h172(x)
        h173(x)
        h174(x)
        h175(x)
        h176(x)
        h177(x)
        h178(x)
        h179(x)
        h180(x)
        h181(x)
        h182(x)
        h183(x)
        h184(x)
        h185(x)
        h186(x)
        h187(x)
        h188(x)
        h189(x)
        h190(x)
        h191(x)
        h192(x)
        h193(x)
        h194(x)
        h195(x)
        h196(x)
        h197(x)
        h198(x)
        h199(x)
        h200(x)
        h201(x)
        h202(x)
        h203(x)
        h204(x)
        h205(x)
        h206(x)
        h207(x)
        h208(x)
        h209(x)
        h210(x)
        h211(x)
        h212(x)
        h213(x)
        h214(x)
        h215(x)
        h216(x)
        h217(x)
        h218(x)
        h219(x)
        h220(x)
        h221(x)
        h222(x)
        h223(x)
        h224(x)
        h225(x)
        h226(x)
        h227(x)
        h228(x)
        h229(x)
        h230(x)
        h231(x)
        h232(x)
        h233(x)
        h234(x)
        h235(x)
        h236(x)
        h237(x)
        h238(x)
        h239(x)
    tl.store(z_ptr + offsets, added(x, y), mask=mask)



def masked_add(x, y):
    z = torch.empty_like(x)
    masked_add_kernel[(triton.cdiv(x.numel(), BLOCK_N),)](x, y, z, x.numel(), BLOCK_N=BLOCK_N)
    return z
