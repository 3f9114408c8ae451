# SPDX-License-Identifier: MIT
"""What the tests of tools/python share.  They end with 77 where what they need is missing."""
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
DATA = ROOT / "tests" / "data"
LIMIT = 1e-5  # of a module and its file


def use_package(library):
    """Makes `import attncl` take the package of this tree, over this library."""
    sys.path.insert(0, str(ROOT / "tools" / "python"))
    sys.dont_write_bytecode = True
    os.environ["ATTNCL_LIBRARY"] = os.path.abspath(library)


def skip(why):
    print("SKIP:", why, file=sys.stderr)
    sys.exit(77)


def need_device():
    import attncl
    if not attncl.devices():
        skip("no OpenCL device")


_ALONE = """
import sys
sys.modules.update(torch=None, transformers=None)
from attncl.convert import main
status = main(sys.argv[1:])
print(next(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM:")))
sys.exit(status)
"""


def convert_alone(*words, status=0, peak=False):
    """attncl-convert in a process that has neither torch nor transformers: what it did, or the MiB of memory that it took at most."""
    done = subprocess.run([sys.executable, "-c", _ALONE, *map(str, words)], capture_output=True, text=True, timeout=240,
                          env={**os.environ, "PYTHONPATH": str(ROOT / "tools" / "python")})
    if done.returncode != status:
        raise AssertionError(f"status {done.returncode}: {done.stdout}{done.stderr}")
    return int(done.stdout.split()[-1]) / 1024 if peak else done


class ExportCase(unittest.TestCase):
    """A test of attncl.export() to `file`, with random numbers from `seed`."""

    def setUp(self):
        import torch
        torch.manual_seed(self.seed)
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.at = pathlib.Path(directory.name)
        self.file = self.at / "m.safetensors"

    def export(self, source, **more):
        import attncl
        report = attncl.export(source, self.file, quiet=True, **{"limit": LIMIT, **more})
        self.assertLessEqual(report.difference, LIMIT)
        return report


def main():
    """Runs the tests of the caller."""
    result = unittest.main(argv=sys.argv[:1] + sys.argv[2:], exit=False, warnings="ignore").result
    if not result.testsRun:
        sys.exit("no test ran")
    sys.exit(not result.wasSuccessful())
