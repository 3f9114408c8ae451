# SPDX-License-Identifier: MIT
"""Intervals by the bootstrap: medians of samples drawn again, with repetition."""
import functools
import math
import random
import statistics

DRAWS = 500


@functools.lru_cache(maxsize=None)
def medians(samples):
    """The medians of DRAWS draws from SAMPLES, the same ones in each run of the program."""
    draw = random.Random(repr(samples))
    return tuple(statistics.median(draw.choices(samples, k=len(samples))) for _ in range(DRAWS))


def draws(result):
    return medians(result.samples) if len(result.samples) > 1 else DRAWS * (result.seconds,)


def middle(values):
    """The middle 95 % of VALUES: (low, high)."""
    values = sorted(values)
    return values[int(0.025 * len(values))], values[int(0.975 * len(values))]


def logs(ours, theirs):
    """Logarithms of the ratio of two results' medians.  What ran once is taken as exact."""
    return [math.log(b / a) for a, b in zip(draws(ours), draws(theirs))]


def ratio(ours, theirs):
    """(low, high) of THEIRS / OURS; None without samples of both."""
    if len(ours.samples) < 2 or len(theirs.samples) < 2:
        return None
    return tuple(math.exp(x) for x in middle(logs(ours, theirs)))


def geometric_mean(pairs):
    """(low, high) of the geometric mean of the ratios of pairs (ours, theirs); None without samples."""
    if not any(ratio(*pair) for pair in pairs):
        return None
    found = [logs(*pair) for pair in pairs]
    return tuple(math.exp(x) for x in middle([statistics.fmean(draw) for draw in zip(*found)]))
