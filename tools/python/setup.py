# SPDX-License-Identifier: MIT
"""Builds libattncl by CMake into the package, in a temporary directory or in ATTNCL_BUILD_DIR."""
import os
import pathlib
import re
import shutil
import subprocess
import tempfile

from setuptools import Distribution, setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_py import build_py

ROOT = pathlib.Path(__file__).resolve().parents[2]
if not (ROOT / "lib" / "model").is_dir():
    raise SystemExit("attncl: the wheel is built inside libattncl's source tree: pip wheel tools/python")
VERSION = re.search(r"project\(attncl VERSION (\S+)", (ROOT / "CMakeLists.txt").read_text())[1]


class BuildWithLibrary(build_py):
    def run(self):
        super().run()
        if self.editable_mode:
            return  # an editable install uses ATTNCL_LIBRARY or the system's library
        with tempfile.TemporaryDirectory() as temporary:  # keeps build files out of the source tree
            build = os.environ.get("ATTNCL_BUILD_DIR")
            if not build:
                build = temporary
                without = (f"-DATTNCL_BUILD_{part}=OFF" for part in ("TESTS", "TOOLS", "BENCH"))
                subprocess.run(["cmake", "-S", str(ROOT), "-B", build, *without], check=True)
            subprocess.run(["cmake", "--build", build, "-j", str(os.cpu_count() or 1), "--target", "attncl"], check=True)
            self.copy_library(pathlib.Path(build, "libattncl.so").resolve())

    def copy_library(self, library):
        """Copies libattncl.so.0.1.0 as libattncl.so.0.1, the name that is loaded."""
        package = pathlib.Path(self.build_lib, "attncl")
        for old in package.glob("libattncl.so*"):
            old.unlink()
        copied = package / library.name.rpartition(".")[0]
        shutil.copyfile(library, copied)
        subprocess.run(["strip", "--strip-debug", str(copied)], check=True)
        (package / "licenses").mkdir(exist_ok=True)
        shutil.copyfile(ROOT / "LICENSE", package / "licenses" / "libattncl")
        for name in ("libclblast1", "libjansson4", "libpcre2-8-0", "libutf8proc2"):  # libraries that auditwheel adds
            terms = pathlib.Path("/usr/share/doc", name, "copyright")
            if terms.exists():
                shutil.copyfile(terms, package / "licenses" / name)


class PlatformWheel(bdist_wheel):
    """Any Python 3, this platform: the library is called by ctypes."""

    def get_tag(self):
        return "py3", "none", super().get_tag()[2]


class DistributionWithLibrary(Distribution):
    def has_ext_modules(self):
        return True


TEMPORARY = tempfile.TemporaryDirectory()  # removed at exit, so that nothing is left in the source tree
setup(version=VERSION, distclass=DistributionWithLibrary,
      options={"build": {"build_base": TEMPORARY.name}, "egg_info": {"egg_base": TEMPORARY.name}},
      cmdclass={"build_py": BuildWithLibrary, "bdist_wheel": PlatformWheel})
