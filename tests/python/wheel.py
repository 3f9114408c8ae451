#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""wheel.py LIBRARY [bundled]: pip builds the wheel, a virtual environment installs it and runs a model from another directory.

The wheel takes the library from the build directory that LIBRARY lies in.  With "bundled" auditwheel adds CLBlast, Jansson, PCRE2 and
utf8proc, as docs/python.md says, and they are loaded from there.  Skipped where pip, venv, setuptools or auditwheel is missing.
"""
import importlib.util
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import zipfile

import support

PROGRAM = """
import pathlib, sys
import attncl, attncl.c_api, numpy
package = pathlib.Path(attncl.__file__).parent
assert str(package).startswith(sys.prefix), package
assert attncl.c_api.library().version.argtypes == []
maps = [line.split()[-1] for line in open("/proc/self/maps")]
assert {path for path in maps if "libattncl" in path} == {str(package / attncl.c_api.SONAME)}, maps
inside = {path for path in maps if any(name in path for name in ("clblast", "jansson", "libpcre2-8", "utf8proc"))}
assert len(inside) == 4 and all(path.startswith(str(package.parent)) for path in inside) == (sys.argv[2:] == ["bundled"]), inside
if attncl.devices():
    with attncl.Model(sys.argv[1]) as model:
        print(model.run(x=numpy.ones((5, 2, 7), "float32"))["output"].shape)
print("version", attncl.version())
"""


def bundle_command(wheel):
    """What docs/python.md says, for this wheel."""
    command, = re.findall(r"^auditwheel repair .*$", (support.ROOT / "docs/python.md").read_text(), re.M)
    return [str(wheel) if word.endswith(".whl") else word for word in shlex.split(command, comments=True)]


def main():
    bundled = sys.argv[2:3]
    for tool in ("auditwheel", "patchelf") if bundled else ():
        if not shutil.which(tool):
            support.skip(f"no {tool}")
    for module in ("pip", "venv", "numpy"):
        if importlib.util.find_spec(module) is None:
            support.skip(f"no {module}")
    library = pathlib.Path(sys.argv[1]).absolute()
    environment = {k: v for k, v in os.environ.items() if k not in ("ATTNCL_LIBRARY", "PYTHONPATH")}
    with tempfile.TemporaryDirectory() as directory:
        at = pathlib.Path(directory)

        def run(*words, **more):
            return subprocess.run(words, capture_output=True, text=True, timeout=240, cwd=at, env=environment | more)

        made = run(sys.executable, "-m", "venv", "--system-site-packages", "--without-pip", "env")
        if made.returncode:
            support.skip(f"no virtual environment: {made.stderr.strip() or made.stdout.strip()}")
        python = str(at / "env" / "bin" / "python")
        inner, = (at / "env" / "lib").glob("python*/site-packages")
        (inner / "outer.pth").write_text(sysconfig.get_path("purelib"))  # numpy, where this Python is an environment too
        has = run(python, "-c", "import setuptools as s; raise SystemExit(int(s.__version__.split('.')[0]) < 77)")
        if has.returncode:
            fetched = run(python, "-m", "pip", "install", "-q", "setuptools>=77")
            if fetched.returncode:
                support.skip("no setuptools 77, and pip cannot fetch it: " + fetched.stderr.strip().splitlines()[-1])
        package = support.ROOT / "tools" / "python"
        before = sorted(package.iterdir())
        built = run(python, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "-w", "wheels",
                    str(package), ATTNCL_BUILD_DIR=str(library.parent))
        if built.returncode:
            sys.exit(f"pip wheel: {built.stdout}{built.stderr}")
        assert sorted(package.iterdir()) == before, "a build leaves files in the source tree"
        wheel, = (at / "wheels").iterdir()
        assert wheel.name.startswith("attncl-") and "-py3-none-linux_" in wheel.name, wheel.name
        names = zipfile.ZipFile(wheel).namelist()
        soname = library.resolve().name.rpartition(".")[0]
        for name in (f"attncl/{soname}", "attncl/convert.py", "attncl/py.typed", "attncl/nn/aft.py"):
            assert name in names, (name, names)
        if bundled:
            repaired = run(*bundle_command(wheel))
            if repaired.returncode:
                sys.exit(f"auditwheel: {repaired.stdout}{repaired.stderr}")
            wheel, = (at / "wheelhouse").iterdir()
            assert "-py3-none-manylinux_" in wheel.name, wheel.name
        installed = run(python, "-m", "pip", "install", "-q", "--no-deps", "--no-index", str(wheel))
        if installed.returncode:
            sys.exit(f"pip install: {installed.stderr}")
        done = run(python, "-c", PROGRAM, str(support.DATA / "linear_grad.safetensors"), *bundled)
        if done.returncode:
            sys.exit(f"{done.stdout}{done.stderr}")
        helped = run(str(at / "env" / "bin" / "attncl-convert"), "--help")
        assert helped.returncode == 0 and "usage: attncl-convert" in helped.stdout, helped
        print(done.stdout, end="")
    return 0


sys.exit(main())
