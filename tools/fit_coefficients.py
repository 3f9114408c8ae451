#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Prints the coefficients of math.clh and the error of each function in exact arithmetic.

Finds the polynomial or rational function with the smallest relative error by iteratively reweighted least squares
(Lawson), linearised for rational functions.  Needs numpy and scipy.
"""
import numpy as np
from scipy import special


def nodes(low, high, n=3000):
    return (low + high) / 2 - (high - low) / 2 * np.cos(np.pi * (np.arange(n) + 0.5) / n)


def fit(x, target, weight, n_num, n_den=0):
    """sum p_k x^k (k < n_num) over 1 + sum q_k x^k (0 < k <= n_den), least max of weight * |error|."""
    attention, den, best = np.ones_like(x), np.ones_like(x), (np.inf, None)
    columns = [x**k for k in range(n_num)] + [-target * x**k for k in range(1, n_den + 1)]
    for _ in range(400):
        scale = np.sqrt(attention) * weight / den
        c = np.linalg.lstsq(np.stack(columns, 1) * scale[:, None], target * scale, rcond=None)[0]
        den = 1 + sum((c[n_num + k - 1] * x**k for k in range(1, n_den + 1)), np.zeros_like(x))
        error = weight * np.abs(sum(c[k] * x**k for k in range(n_num)) / den - target)
        if error.max() < best[0]:
            best = (error.max(), c)
        attention = np.maximum(attention * error, 1e-300)
        attention = np.maximum(attention / attention.sum(), 1e-30)
    return best


def show(name, result):
    print(f"{name}: {result[0]:.1e}\n    " + ", ".join(f"{v:.9g}f" for v in result[1]))


def away_from_zero(x):
    return x[np.abs(x) > 1e-3]


r = away_from_zero(nodes(-0.3467, 0.3467))
show("exp(r) = 1 + r + r^2 q(r)", fit(r, (np.expm1(r) - r) / r**2, r**2 / np.exp(r), 5))

f = away_from_zero(nodes(np.sqrt(0.5) - 1, np.sqrt(2.0) - 1))
show("log(1 + f) = f - f^2/2 + f^3 q(f)",
     fit(f, (np.log1p(f) - f + f * f / 2) / f**3, np.abs(f**3 / np.log1p(f)), 9))

x = nodes(1e-3, 0.625)
show("tanh(x) = x + x^3 q(x^2)", fit(x * x, (np.tanh(x) - x) / x**3, x**3 / np.tanh(x), 5))

a = nodes(0, 14)
tail = 0.5 * special.erfcx(a / np.sqrt(2))
show("erfc(a/sqrt 2)/2 = exp(-a^2/2) p(a)/q(a)", fit(a, tail, 1 / tail, 5, 5))
