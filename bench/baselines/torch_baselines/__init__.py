# SPDX-License-Identifier: MIT
"""The benchmark's cases in PyTorch: importing a module registers its formulations."""
from . import aft, attention, feedback, gmlp, lm, gemm, recurrent, rows  # noqa: F401
from .registry import Case, formulations  # noqa: F401
