# SPDX-License-Identifier: MIT
"""The library's models in PyTorch, written as the published code is (labml, d2l): parameters have its names.

tests/data/generate.py computes the golden files with them in float64; bench/baselines times them.  What can be computed
in a faster way is a method `core`, which the baselines replace by those of faster.py.  model_file.py makes them from
model files; twin.py trains them as `attncl train` does; dropout.py gives them the library's masks.
"""
