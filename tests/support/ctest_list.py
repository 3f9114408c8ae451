# SPDX-License-Identifier: MIT
"""The tests of a build directory, as CTest lists them."""

import json
import os
import subprocess
import tempfile


def ctest_list(build):
    """A list of {"name", "command", "properties"}.  CTest empties its log even when it only lists, and reasons of skips are
    read from there: it lists from a directory of its own."""
    with tempfile.TemporaryDirectory() as directory:
        with open(os.path.join(directory, "CTestTestfile.cmake"), "w") as file:
            file.write(f'subdirs("{os.path.abspath(build)}")\n')
        listed = subprocess.run(["ctest", "--test-dir", directory, "--show-only=json-v1"], stdout=subprocess.PIPE, check=True)
        return json.loads(listed.stdout)["tests"]
