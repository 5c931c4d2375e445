"""Mathematical functions that numpy does not have, element by element, computed in float64 but for erf of float32."""

from __future__ import annotations

import numpy as np

# W. J. Cody, Rational Chebyshev approximations for the error function, Mathematics of Computation 23 (1969), and his
# program CALERF (SPECFUN): numerators and denominators, the highest power first.
_NEAR_OVER = (
    1.85777706184603153e-1,
    3.16112374387056560e0,
    1.13864154151050156e2,
    3.77485237685302021e2,
    3.20937758913846947e3,
)
_NEAR_UNDER = (1.0, 2.36012909523441209e1, 2.44024637934444173e2, 1.28261652607737228e3, 2.84423683343917062e3)
_MIDDLE_OVER = (
    2.15311535474403846e-8,
    5.64188496988670089e-1,
    8.88314979438837594e0,
    6.61191906371416295e1,
    2.98635138197400131e2,
    8.81952221241769090e2,
    1.71204761263407058e3,
    2.05107837782607147e3,
    1.23033935479799725e3,
)
_MIDDLE_UNDER = (
    1.0,
    1.57449261107098347e1,
    1.17693950891312499e2,
    5.37181101862009858e2,
    1.62138957456669019e3,
    3.29079923573345963e3,
    4.36261909014324716e3,
    3.43936767414372164e3,
    1.23033935480374942e3,
)
_FAR_OVER = (
    1.63153871373020978e-2,
    3.05326634961232344e-1,
    3.60344899949804439e-1,
    1.25781726111229246e-1,
    1.60837851487422766e-2,
    6.58749161529837803e-4,
)
_FAR_UNDER = (
    1.0,
    2.56852019228982242e0,
    1.87295284992346725e0,
    5.27905102951428412e-1,
    6.05183413124413191e-2,
    2.33520497626869185e-3,
)


def _polynomial(coefficients: tuple[float, ...], x: np.ndarray) -> np.ndarray:
    """Returns the polynomial's value at x; the coefficient of the highest power comes first."""
    out = np.full_like(x, coefficients[0])
    for coefficient in coefficients[1:]:
        out *= x
        out += coefficient
    return out


def _ratio(over: tuple[float, ...], under: tuple[float, ...], x: np.ndarray) -> np.ndarray:
    return _polynomial(over, x) / _polynomial(under, x)


_NEAR, _FAR = 0.46875, 4.0


def _scaled_tail(x: np.ndarray) -> np.ndarray:
    """Returns exp(x * x) * erfc(x) for x >= 0.46875."""
    out = _ratio(_MIDDLE_OVER, _MIDDLE_UNDER, np.minimum(x, _FAR))
    far = x > _FAR
    if far.any():
        distant = np.where(np.isfinite(x[far]), x[far], 1e300)
        square = 1 / distant / distant
        out[far] = (1 / np.sqrt(np.pi) - square * _ratio(_FAR_OVER, _FAR_UNDER, square)) / distant
    return out


def erf(x: np.ndarray) -> np.ndarray:
    """Returns the error function in x's own type: Cody's approximations, with an error below 1e-15 in float64.

    For float32 it comes from a table.
    """
    if x.dtype == np.float32:
        return _erf_by_table(x)
    size = np.abs(x)
    near = np.minimum(size, _NEAR)
    out = x * _ratio(_NEAR_OVER, _NEAR_UNDER, near * near)
    far = size > _NEAR
    if far.any():
        beyond = np.minimum(size[far], 6.0)  # erf(6) is 1 in float64
        out[far] = np.copysign(1 - np.exp(-beyond * beyond) * _scaled_tail(beyond), x[far])
    return np.where(np.isnan(x), x, out)


_PER_UNIT, _LAST = 64, 4.0  # erf(4) is 1 in float32


def _taylor_table() -> list[np.ndarray]:
    """Returns erf and its derivatives, divided by factorials, at every 1/64 up to 4: the 5th term is below 2e-11.

    Each is a float32 array of 257 numbers.
    """
    x = np.arange(_LAST * _PER_UNIT + 1) / _PER_UNIT
    slope = 2 / np.sqrt(np.pi) * np.exp(-x * x)
    terms = erf(x), slope, -x * slope, (2 * x * x - 1) / 3 * slope, (3 - 2 * x * x) * x / 6 * slope
    return [term.astype(np.float32) for term in terms]


_BLOCK = 1 << 14  # elements whose intermediate results stay in the nearest cache


def _erf_by_table(x: np.ndarray) -> np.ndarray:
    """Returns erf of float32: several times as fast as through float64, and as close as a GPU's, within 2 ulp."""
    flat, out = x.reshape(-1), np.empty(x.size, np.float32)
    for start in range(0, x.size, _BLOCK):
        part = slice(start, start + _BLOCK)
        out[part] = _erf_of_block(flat[part])
    return out.reshape(x.shape)


def _erf_of_block(x: np.ndarray) -> np.ndarray:
    size = np.fmin(np.abs(x), np.float32(_LAST))
    nearest = np.rint(size * _PER_UNIT)
    apart, row = size - nearest / _PER_UNIT, nearest.astype(np.intp)
    *rest, last = _TAYLOR
    out = np.take(last, row)
    for term in reversed(rest):
        out *= apart
        out += np.take(term, row)
    return np.where(np.isnan(x), x, np.copysign(out, x))


_TAYLOR = _taylor_table()


def erfcx(x: np.ndarray) -> np.ndarray:
    """Returns exp(x * x) * erfc(x), in float64."""
    size = np.abs(x)
    beyond = np.where(size < _NEAR, np.exp(x * x) * (1 - erf(size)), _scaled_tail(np.maximum(size, _NEAR)))
    out = np.where(x < 0, 2 * np.exp(x * x) - beyond, beyond)
    return np.where(np.isnan(x), x, out)


def erfc(x: np.ndarray) -> np.ndarray:
    """Returns 1 - erf(x) without cancellation, in float64."""
    tail = np.exp(-x * x) * _scaled_tail(np.maximum(np.abs(x), _NEAR))
    out = np.where(np.abs(x) < _NEAR, 1 - erf(x), np.where(x < 0, 2 - tail, tail))
    return np.where(np.isnan(x), x, out)


def normal(x: np.ndarray) -> np.ndarray:
    """Returns the standard normal distribution function, in float64."""
    return 0.5 * erfc(-x * np.sqrt(0.5))
