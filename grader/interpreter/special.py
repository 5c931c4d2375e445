"""Functions of mathematics that numpy does not have, element by element, computed in float64."""

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
    """The highest power first."""
    out = np.full_like(x, coefficients[0])
    for one in coefficients[1:]:
        out *= x
        out += one
    return out


def _ratio(over: tuple[float, ...], under: tuple[float, ...], x: np.ndarray) -> np.ndarray:
    return _polynomial(over, x) / _polynomial(under, x)


_NEAR, _FAR = 0.46875, 4.0


def _scaled_tail(x: np.ndarray) -> np.ndarray:
    """exp(x * x) * erfc(x) of x >= 0.46875."""
    out = _ratio(_MIDDLE_OVER, _MIDDLE_UNDER, np.minimum(x, _FAR))
    far = x > _FAR
    if far.any():
        distant = np.where(np.isfinite(x[far]), x[far], 1e300)
        square = 1 / distant / distant
        out[far] = (1 / np.sqrt(np.pi) - square * _ratio(_FAR_OVER, _FAR_UNDER, square)) / distant
    return out


def erf(x: np.ndarray) -> np.ndarray:
    """The error function in x's own type: Cody's approximations in float64, with an error below 1e-15."""
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
    """erf and its derivatives, divided by factorials, at every 1/64 up to 4: the 5th term is below 2e-11."""
    x = np.arange(_LAST * _PER_UNIT + 1) / _PER_UNIT
    slope = 2 / np.sqrt(np.pi) * np.exp(-x * x)
    terms = erf(x), slope, -x * slope, (2 * x * x - 1) / 3 * slope, (3 - 2 * x * x) * x / 6 * slope
    return [term.astype(np.float32) for term in terms]


_BLOCK = 1 << 14  # elements whose intermediate results stay in the nearest cache


def _erf_by_table(x: np.ndarray) -> np.ndarray:
    """Float32, several times as fast as by way of float64, and as near as a GPU's: within 2 ulp."""
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
    """exp(x * x) * erfc(x), float64."""
    size = np.abs(x)
    beyond = np.where(size < _NEAR, np.exp(x * x) * (1 - erf(size)), _scaled_tail(np.maximum(size, _NEAR)))
    out = np.where(x < 0, 2 * np.exp(x * x) - beyond, beyond)
    return np.where(np.isnan(x), x, out)


def erfc(x: np.ndarray) -> np.ndarray:
    """1 - erf(x) without cancellation, float64."""
    tail = np.exp(-x * x) * _scaled_tail(np.maximum(np.abs(x), _NEAR))
    out = np.where(np.abs(x) < _NEAR, 1 - erf(x), np.where(x < 0, 2 - tail, tail))
    return np.where(np.isnan(x), x, out)


def normal(x: np.ndarray) -> np.ndarray:
    """The standard normal distribution function, float64."""
    return 0.5 * erfc(-x * np.sqrt(0.5))


# M. J. Wichura, Algorithm AS 241: The percentage points of the normal distribution, Applied Statistics 37 (1988).
_CENTRE_OVER = (
    2.5090809287301226727e3,
    3.3430575583588128105e4,
    6.7265770927008700853e4,
    4.5921953931549871457e4,
    1.3731693765509461125e4,
    1.9715909503065514427e3,
    1.3314166789178437745e2,
    3.3871328727963666080e0,
)
_CENTRE_UNDER = (
    5.2264952788528545610e3,
    2.8729085735721942674e4,
    3.9307895800092710610e4,
    2.1213794301586595867e4,
    5.3941960214247511077e3,
    6.8718700749205790830e2,
    4.2313330701600911252e1,
    1.0,
)
_SIDE_OVER = (
    7.74545014278341407640e-4,
    2.27238449892691845833e-2,
    2.41780725177450611770e-1,
    1.27045825245236838258e0,
    3.64784832476320460504e0,
    5.76949722146069140550e0,
    4.63033784615654529590e0,
    1.42343711074968357734e0,
)
_SIDE_UNDER = (
    1.05075007164441684324e-9,
    5.47593808499534494600e-4,
    1.51986665636164571966e-2,
    1.48103976427480074590e-1,
    6.89767334985100004550e-1,
    1.67638483018380384940e0,
    2.05319162663775882187e0,
    1.0,
)
_END_OVER = (
    2.01033439929228813265e-7,
    2.71155556874348757815e-5,
    1.24266094738807843860e-3,
    2.65321895265761230930e-2,
    2.96560571828504891230e-1,
    1.78482653991729133580e0,
    5.46378491116411436990e0,
    6.65790464350110377720e0,
)
_END_UNDER = (
    2.04426310338993978564e-15,
    1.42151175831644588870e-7,
    1.84631831751005468180e-5,
    7.86869131145613259100e-4,
    1.48753612908506148525e-2,
    1.36929880922735805310e-1,
    5.99832206555887937690e-1,
    1.0,
)


def quantile(distance: np.ndarray, tail: np.ndarray) -> np.ndarray:
    """Where the normal distribution function is p = 0.5 + distance; `tail` is the smaller of p and 1 - p; float64."""
    centre = 0.180625 - distance * distance
    inner = distance * _ratio(_CENTRE_OVER, _CENTRE_UNDER, np.maximum(centre, 0))
    depth = np.sqrt(-np.log(tail))
    outer = np.where(
        depth <= 5,
        _ratio(_SIDE_OVER, _SIDE_UNDER, np.minimum(depth, 5) - 1.6),
        _ratio(_END_OVER, _END_UNDER, np.clip(depth, 5, 40) - 5),
    )
    out = np.where(np.abs(distance) <= 0.425, inner, np.copysign(outer, distance))
    out = np.where(tail == 0, np.copysign(np.inf, distance), out)
    return np.where(tail >= 0, out, np.nan)


# ---- Bessel functions -------------------------------------------------------------------------------------------

_LARGE = 50.0  # from here on Hankel's expansion has float64's precision for the orders 0 and 1


def _bessel_table(x: np.ndarray, most: int) -> np.ndarray:
    """J of the orders 0 to `most` at each x: [..., most + 1]; they are the Fourier coefficients of exp(i x sin t)."""
    points = 1 << int(2 * max(most, np.abs(x).max(initial=0)) + 128).bit_length()
    angle = 2 * np.pi / points * np.arange(points)
    return np.fft.fft(np.exp(1j * x[..., None] * np.sin(angle)))[..., : most + 1].real / points


def _hankel(order: int, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(J, Y) of order 0 or 1 at large x (Abramowitz and Stegun 9.2.5 to 9.2.10)."""
    even, odd, term = np.ones_like(x), np.zeros_like(x), np.ones_like(x)
    for n in range(1, 12):
        term = term * (4 * order * order - (2 * n - 1) ** 2) / (8 * n * x)
        part = term if n % 4 < 2 else -term
        if n % 2:
            odd = odd + part
        else:
            even = even + part
    phase, scale = x - (order / 2 + 0.25) * np.pi, np.sqrt(2 / (np.pi * x))
    cosine, sine = np.cos(phase), np.sin(phase)
    return scale * (even * cosine - odd * sine), scale * (even * sine + odd * cosine)


def _small(order: int, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(J, Y) of order 0 or 1 at 0 < x <= 50: Neumann's series of Y0 (A. and S. 9.1.88), and its derivative."""
    table = _bessel_table(x, 122)
    k = np.arange(1, 61)
    factors = np.where(k % 2 == 0, 1, -1) / k
    logarithm = np.log(x / 2) + np.euler_gamma
    if order == 0:
        return table[..., 0], (2 * logarithm * table[..., 0] - 4 * (table[..., 2 * k] @ factors)) / np.pi
    slopes = (table[..., 2 * k - 1] - table[..., 2 * k + 1]) / 2
    out = 2 * (table[..., 0] / x - logarithm * table[..., 1]) - 4 * (slopes @ factors)
    return table[..., 1], -out / np.pi


def _both(order: int, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    large = x > _LARGE
    out = np.empty((2, *x.shape))
    out[:, large] = _hankel(order, x[large])
    out[:, ~large] = _small(order, x[~large])
    out[:, np.isinf(x)] = 0
    return out[0], out[1]


def bessel_j(order: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Of the first kind, an integer order from 0 on; float64. NaN for negative orders, as CUDA has it."""
    order, x = np.broadcast_arrays(order, x)
    size = np.where(np.isnan(x), 0, np.abs(x))
    out = np.empty(x.shape)
    upward = (size > _LARGE) & (order < size)  # where the recurrence loses nothing
    out[upward] = _recurrence(order[upward], size[upward], 0)
    rest = ~upward
    for part in np.array_split(np.flatnonzero(rest), max(1, rest.sum() // 1024)):
        if part.size:
            orders = np.clip(order.flat[part], 0, 4096)
            table = _bessel_table(np.minimum(size.flat[part], 4096), int(orders.max()))
            out.flat[part] = np.take_along_axis(table, orders[:, None].astype(np.int64), 1)[:, 0]
    out = np.where((x < 0) & (order % 2 == 1), -out, out)
    return np.where(np.isnan(x) | (order < 0), np.nan, out)


def bessel_y(order: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Of the second kind, an integer order from 0 on; float64. -inf at 0, NaN below and for negative orders."""
    order, x = np.broadcast_arrays(order, x)
    fine = x > 0
    out = np.full(x.shape, np.nan)
    out[fine] = _recurrence(order[fine], x[fine], 1)
    return np.where(order < 0, np.nan, np.where(x == 0, -np.inf, out))


def _recurrence(order: np.ndarray, x: np.ndarray, kind: int) -> np.ndarray:
    """From the orders 0 and 1 upwards; `kind` 0: J, 1: Y."""
    before, now = _both(0, x)[kind], _both(1, x)[kind]
    out = np.where(order == 0, before, now)
    for n in range(1, int(order.max(initial=0))):
        before, now = now, 2 * n / x * now - before
        out = np.where(order == n + 1, now, out)
    return out


def bessel_i(order: int, x: np.ndarray) -> np.ndarray:
    """Modified, of the first kind, float64: the mean of exp(x cos t) cos(n t) over equidistant points."""
    out = np.zeros_like(x)
    size = np.minimum(np.abs(x), 800)
    for angle in 2 * np.pi / 256 * np.arange(256):
        out += np.exp(size * np.cos(angle)) * np.cos(order * angle)
    out /= 256
    return np.where(np.isnan(x), x, np.where((x < 0) & (order % 2 == 1), -out, out))
