#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""number_pairs.py OUT.tsv [N]: N numbers below a million, each once, in English and in French words, in random order.

A small translation: 97 is "quatre vingt dix sept", and whether 80 and hundreds have an s depends on what follows.
"""
import random
import sys

ENGLISH = ("zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen "
           "seventeen eighteen nineteen").split()
ENGLISH_TENS = "- - twenty thirty forty fifty sixty seventy eighty ninety".split()
FRENCH = "zéro un deux trois quatre cinq six sept huit neuf dix onze douze treize quatorze quinze seize".split()
FRENCH_TENS = "- dix vingt trente quarante cinquante soixante".split()


def english_below_thousand(n):
    words = []
    if n >= 100:
        words = [ENGLISH[n // 100], "hundred"] + ["and"] * (n % 100 > 0)
        n %= 100
    if n >= 20:
        words.append(ENGLISH_TENS[n // 10])
        n %= 10
    return words + [ENGLISH[n]] * (n > 0)


def english(n):
    many, n_left = divmod(n, 1000)
    words = english_below_thousand(many) + ["thousand"] if many else []
    if many and 0 < n_left < 100:
        words.append("and")
    return words + english_below_thousand(n_left) or ["zero"]


def french_below_hundred(n, is_last):
    if n < 17:
        return [FRENCH[n]] if n else []
    if n < 20:
        return ["dix", FRENCH[n - 10]]
    if n < 80:
        tens = min(n // 10, 6)
        left = n - 10 * tens
        return [FRENCH_TENS[tens]] + ["et"] * (left in (1, 11)) + french_below_hundred(left, is_last)
    return ["quatre", "vingts" if n == 80 and is_last else "vingt"] + french_below_hundred(n - 80, is_last)


def french_below_thousand(n, is_last):
    words = []
    if n >= 100:
        words = [FRENCH[n // 100]] * (n >= 200) + ["cents" if n >= 200 and n % 100 == 0 and is_last else "cent"]
    return words + french_below_hundred(n % 100, is_last)


def french(n):
    many, n_left = divmod(n, 1000)
    words = french_below_thousand(many, False) * (many > 1) + ["mille"] if many else []
    return words + french_below_thousand(n_left, True) or ["zéro"]


def main(path, count="5000"):
    with open(path, "w", encoding="utf-8") as file:
        for n in random.Random(1).sample(range(1000000), int(count)):
            print(" ".join(english(n)), " ".join(french(n)), sep="\t", file=file)


if __name__ == "__main__":
    if not 2 <= len(sys.argv) <= 3:
        sys.exit("usage: number_pairs.py OUT.tsv [N]")
    main(*sys.argv[1:])
