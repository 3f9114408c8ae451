#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Seeds the mistakes of mutants.tsv, one at a time, and says which of them the named test misses.

A line of the table has four cells with tabs between them: the file, the text, what replaces it, the test that must fail
(op.softmax@gpu: with the kernels that GPUs get).  In texts \\n is a line end and \\t a tab.  The file has the text
once; FILE#2 means the second place.  Mistakes in cl/ run by ATTNCL_CL_DIR, without a build.  Others run in a copy of the
source tree, BUILD/mutants, which is built once and then relinked.
"""

import argparse
import collections
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time

from support.ctest_list import ctest_list

COPIED = ["CMakeLists.txt", "cl", "cmake", "include", "lib", "tests", "bench", "examples", "tools", "LICENSE"]
PASSED, FAILED, SKIPPED, BROKEN = "passed", "died", "skipped", "does not compile"
Mutant = collections.namedtuple("Mutant", "line file place old new test")


def read_table(path, root):
    """The mutants, and what is wrong with lines of the table."""
    mutants, errors = [], []
    with open(path, encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            if line.startswith("#") or not line.strip():
                continue
            cells = line.rstrip("\n").split("\t")
            if len(cells) != 4:
                errors.append("line %d has %d cells, not 4" % (number, len(cells)))
                continue
            name, old, new, test = cells
            old, new = [text.replace("\\n", "\n").replace("\\t", "\t") for text in (old, new)]
            name, _, place = name.partition("#")
            mutant = Mutant(number, name, int(place or 1), old, new, test)
            try:
                with open(os.path.join(root, name), encoding="utf-8") as source:
                    count = source.read().count(old)
            except OSError as error:
                errors.append("line %d: %s" % (number, error))
                continue
            if old == new or (count != 1 if not place else count < mutant.place):
                errors.append("line %d: %s has the text %d times: %s" % (number, name, count, old))
                continue
            mutants.append(mutant)
    return mutants, errors


def seed_mistake(mutant, directory):
    """Writes the mutated file; returns its path and its text as it was."""
    path = os.path.join(directory, mutant.file)
    with open(path, encoding="utf-8") as file:
        text = file.read()
    at = -1
    for _ in range(mutant.place):
        at = text.index(mutant.old, at + 1)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text[:at] + mutant.new + text[at + len(mutant.old):])
    return path, text


def restore(path, text):
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def copy_changed(source, target):
    """Copies a file or directory; what is the same already keeps its time, so that make builds what changed."""
    if os.path.isfile(source):
        with open(source, "rb") as file:
            content = file.read()
        if os.path.isfile(target):
            with open(target, "rb") as file:
                if file.read() == content:
                    return
        os.makedirs(os.path.dirname(target), exist_ok=True)
        shutil.copy2(source, target)
        os.utime(target)
    elif os.path.isdir(source):
        if os.path.isdir(target):
            for name in set(os.listdir(target)) - set(os.listdir(source)):
                path = os.path.join(target, name)
                (shutil.rmtree if os.path.isdir(path) else os.remove)(path)
        for name in os.listdir(source):
            if name != "__pycache__":
                copy_changed(os.path.join(source, name), os.path.join(target, name))


class Runner:
    def __init__(self, root, build, timeout):
        self.root, self.build, self.timeout = root, build, timeout
        self.tree = os.path.join(build, "mutants")
        self.tests = {}  # of .ci/run: the command, and the environment
        for test in ctest_list(build):
            properties = {p["name"]: p["value"] for p in test.get("properties", [])}
            # The kernels of a mutant are not those of the library.
            environment = [v for v in properties.get("ENVIRONMENT", []) if not v.startswith("ATTNCL_DUMP_CL=")]
            if properties.get("LABELS") != ["full"]:
                self.tests[test["name"]] = test.get("command", []), dict(v.split("=", 1) for v in environment)

    def run_test(self, build, test, kernels, timeout=None):
        """Whether the test passes, with kernels of a directory, or the built-in ones for None; and what it writes."""
        # Check's log tells of each case when it ends: the first that fails is enough.
        environment = dict(os.environ, POCL_EXTRA_BUILD_FLAGS="-cl-opt-disable", CK_LOG_FILE_NAME="-")
        command, own = self.tests[test]
        command = [word.replace(self.build + os.sep, build + os.sep) for word in command]
        environment.update(own)
        if kernels:
            environment["ATTNCL_CL_DIR"] = os.path.join(kernels, "cl")
        end = time.monotonic() + (timeout or self.timeout)
        status, text = None, ""
        with tempfile.TemporaryFile() as output:
            process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, env=environment, start_new_session=True)
            while status is None:
                try:
                    status = process.wait(0.2)
                except subprocess.TimeoutExpired:
                    if re.search(r"(?m)^\S+:\d+:[FE]:", text) or time.monotonic() > end:
                        os.killpg(process.pid, 9)
                        status = process.wait()
                text = os.pread(output.fileno(), 1 << 22, 0).decode(errors="replace")
        if status and re.search(r"does not compile|CL_BUILD_PROGRAM_FAILURE", text):
            return BROKEN, text
        skipped = re.search(r"skipped: (\d+) of (\d+) cases", text)
        if status == 77 and skipped and int(skipped[1]) < int(skipped[2]):
            return PASSED, text
        return {0: PASSED, 77: SKIPPED}.get(status, FAILED), text

    def make(self, *targets):
        done = subprocess.run(["cmake", "--build", os.path.join(self.tree, "build"), "--target", *targets],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        return done.returncode == 0, done.stdout.decode(errors="replace")

    def prepare_tree(self):
        source = os.path.join(self.tree, "source")
        for name in COPIED:
            copy_changed(os.path.join(self.root, name), os.path.join(source, name))
        launcher = ["-DCMAKE_C_COMPILER_LAUNCHER=ccache"] if shutil.which("ccache") else []
        subprocess.run(["cmake", "-S", source, "-B", os.path.join(self.tree, "build"), "-DATTNCL_BUILD_TESTS=ON",
                        "-DATTNCL_BUILD_BENCH=OFF"] + launcher, stdout=subprocess.DEVNULL, check=True)
        built, text = self.make("attncl-tests", "attncl_tool")
        if not built:
            sys.exit("mutants: the copy of the source tree does not build:\n" + text)

    def try_mutant(self, mutant, kernels, tests):
        """The outcome of each test with the mistake, and their output."""
        is_kernel = mutant.file.startswith("cl/")
        path, text = seed_mistake(mutant, kernels if is_kernel else os.path.join(self.tree, "source"))
        try:
            if not is_kernel:
                units = {self.tests[test][0][0].endswith("attncl-tests") for test in tests}
                built, output = self.make(*("attncl-tests" if unit else "attncl_tool" for unit in units))
                if not built:
                    return [(BROKEN, output)]
            build = self.build if is_kernel else os.path.join(self.tree, "build")
            return [self.run_test(build, test, kernels if is_kernel else None) for test in tests]
        finally:
            restore(path, text)


def show(mutant):
    return "%d %s: %s: %s -> %s" % (mutant.line, mutant.test, mutant.file, *(" ".join(t.split()) for t in mutant[3:5]))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", default="build-tests", help="build directory with attncl-tests")
    parser.add_argument("number", nargs="?", type=int, default=0, help="mutants to try, at random; default: all")
    parser.add_argument("--table", help="default: mutants.tsv beside this file")
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 31), help="of the choice")
    parser.add_argument("--only", default="", help="regular expression: of the lines to try, as they are printed")
    parser.add_argument("--jobs", type=int, default=1, help="tests at once; mistakes in lib/ take turns in one of them")
    parser.add_argument("--timeout", type=int, default=120, help="seconds of a test; one that takes longer has failed")
    parser.add_argument("--check", action="store_true", help="only whether each line can be applied and names a test")
    parser.add_argument("--all-tests", action="store_true", help="try the family's other tests on a mutant that lives")
    o = parser.parse_args()

    here = os.path.dirname(os.path.abspath(__file__))
    root = os.path.dirname(here)
    mutants, errors = read_table(o.table or os.path.join(here, "mutants.tsv"), root)
    mutants = [m for m in mutants if re.search(o.only, show(m))]
    runner = Runner(root, os.path.abspath(o.build), o.timeout)
    errors += ["line %d: .ci/run has no test %s" % (m.line, m.test) for m in mutants if m.test not in runner.tests]
    if o.check:
        print("\n".join(errors))
        return 1 if errors else 0
    mutants = [m for m in mutants if m.test in runner.tests]
    if o.number:
        print("seed %d" % o.seed)
        mutants = random.Random(o.seed).sample(mutants, min(o.number, len(mutants)))
    if any(not m.file.startswith("cl/") for m in mutants):
        runner.prepare_tree()

    hosts = collections.deque(m for m in mutants if not m.file.startswith("cl/"))
    rest = collections.deque(m for m in mutants if m.file.startswith("cl/"))
    dead, living, usable, lock = [], [], {}, threading.Lock()

    def is_usable(test):
        """Whether the test passes without a mistake."""
        if test not in usable:
            outcome, text = runner.run_test(runner.build, test, None, 20 * o.timeout)
            usable[test] = outcome == PASSED
            if outcome == SKIPPED:
                print("skipped: %s, %s" % (test, text[-200:].strip()))
            elif outcome != PASSED:
                errors.append("%s fails without a mistake: %s" % (test, text[-400:]))
        return usable[test]

    def judge(mutant, kernels):
        if not is_usable(mutant.test):
            return
        outcome, text = runner.try_mutant(mutant, kernels, [mutant.test])[0]
        killers = []
        if outcome == PASSED and o.all_tests:
            family, variant = mutant.test.split(".")[0], mutant.test.partition("@")[2]
            tests = [n for n in runner.tests if n.split(".")[0] == family and n.partition("@")[2] == variant]
            outcomes = runner.try_mutant(mutant, kernels, tests)
            killers = [test for test, (found, _) in zip(tests, outcomes) if found == FAILED]
        with lock:
            print("%-8s %s%s" % ({FAILED: "died", PASSED: "LIVES"}.get(outcome, "ERROR"), show(mutant),
                                 "; dies in " + " ".join(killers) if killers else ""), flush=True)
            if outcome in (BROKEN, SKIPPED):
                errors.append("%s: %s: %s" % (show(mutant), outcome, text[-400:]))
            else:
                (dead if outcome == FAILED else living).append(mutant)

    def work(takes_hosts):
        with tempfile.TemporaryDirectory(prefix="attncl-mutants-") as kernels:
            shutil.copytree(os.path.join(root, "cl"), os.path.join(kernels, "cl"))
            for queue in [hosts, rest] if takes_hosts else [rest]:
                while True:
                    try:
                        mutant = queue.popleft()
                    except IndexError:
                        break
                    try:
                        judge(mutant, kernels)
                    except OSError as error:
                        errors.append("%s: %s" % (show(mutant), error))

    threads = [threading.Thread(target=work, args=(i == 0,)) for i in range(max(1, o.jobs))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for error in errors:
        print("ERROR: " + error)
    for mutant in living:
        print("LIVES: " + show(mutant))
    print("%d of %d mutants died" % (len(dead), len(dead) + len(living)))
    return 1 if living or errors else 0


if __name__ == "__main__":
    sys.exit(main())
