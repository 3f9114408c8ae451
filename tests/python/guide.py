#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""guide.py LIBRARY: the examples of docs/python.md print what the page says.  Needs torch."""
import doctest
import os
import re
import sys
import tempfile

import support

try:
    import torch
except ImportError:
    support.skip("no torch")
support.use_package(sys.argv[1])
support.need_device()

torch.manual_seed(1)
name = "docs/python.md"
text = re.sub("^```.*$", "", (support.ROOT / name).read_text(), flags=re.M)  # a fence would be expected output
test = doctest.DocTestParser().get_doctest(text, {}, name, name, 0)
with tempfile.TemporaryDirectory() as directory:
    os.chdir(directory)
    os.symlink(support.ROOT / "examples", "examples")
    results = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE).run(test)
    os.chdir("/")
assert results.attempted > 40, results
sys.exit(results.failed > 0)
