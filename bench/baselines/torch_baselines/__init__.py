# SPDX-License-Identifier: MIT
"""The benchmark's cases in PyTorch: importing a module registers its formulations."""
import os
import sys

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..", "tests"))  # torch_models

from . import gpt2, layers, llama, models, ops  # noqa: E402,F401
from .registry import Case, formulations  # noqa: E402,F401
