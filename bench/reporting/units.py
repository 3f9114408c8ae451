# SPDX-License-Identifier: MIT
"""Quantities as people read them."""
import math

ABSENT = "–"


def short(x, digits=3):
    """1234.5 -> 1230, 0.01234 -> 0.0123: so many significant digits, without an exponent where it can."""
    if x is None:
        return ABSENT
    if x == 0:
        return "0"
    if not 1e-5 <= abs(x) < 1e7:
        return f"{x:.{digits - 1}e}"
    decimals = max(0, digits - 1 - math.floor(math.log10(abs(x))))
    return f"{x:.{decimals}f}"


def ms(seconds):
    return ABSENT if seconds is None else short(1e3 * seconds, 4)


def scaled(x, units, digits=3):
    """UNITS: (size of one, name), the largest first.  No DIGITS: for a round number."""
    if x is None:
        return ABSENT
    for one, name in units:
        if abs(x) >= 0.9995 * one:
            break
    return f"{short(x / one) if digits else format(x / one, '.6g')} {name}"


def seconds(x, digits=3):
    return scaled(x, ((1, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns")), digits)


def memory(x, digits=3):
    return "0" if x == 0 else scaled(x, ((2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB"), (1, "B")), digits)


def count(x):
    return ABSENT if x is None else f"{x:.0f}"


def per_second(x, unit):
    return scaled(x, ((1e12, "T" + unit), (1e9, "G" + unit), (1e6, "M" + unit), (1, unit)))


def ratio(x):
    """One below 1 is never rounded up to it."""
    if x is None:
        return ABSENT
    if x < 0.1:
        return short(x, 2)
    digits = 2 if x < 9.995 else 1 if x < 99.95 else 0
    if x < 1:
        x = math.floor(100 * x) / 100
    return f"{x:.{digits}f}"


def interval(found):
    """(low, high) as "2.85 to 2.96"; "" without one."""
    return f"{ratio(found[0])} to {ratio(found[1])}" if found else ""


def percent(x):
    return ABSENT if x is None else f"{x:.0f} %"


def geometric_mean(values):
    return math.exp(sum(map(math.log, values)) / len(values))


def decades(low, high, label):
    """Tics of a logarithmic axis: 1, 2, 5 in each decade where there are few of them."""
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    steps = (1,) if high / low > 100 else (1, 2, 5) if high / low > 3 else (1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 7, 8, 9)
    marks = [m * 10.0**e for e in range(first, last + 1) for m in steps]
    return [(m, label(m)) for m in marks if 0.999 * low <= m <= 1.001 * high]
