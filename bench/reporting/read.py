# SPDX-License-Identifier: MIT
"""Reports of docs/dev/benchmark-reports.md, read and checked, so that the rest may trust types."""
import json
import math
import re

SCHEMA = 2
OUTCOMES = ("ok", "wrong", "failed", "not run")


class BadReport(Exception):
    """One line: the file, the place in it, and what disagrees."""


class Checked:
    """A JSON object whose fields are asked for by type; an absent one and null are the same."""

    def __init__(self, value, place):
        if not isinstance(value, dict):
            raise BadReport(f"{place}: an object was expected, found {kind(value)}")
        self.value, self.place = value, place

    def field(self, name, types, what):
        value = self.value.get(name)
        if value is None:
            return None
        if not isinstance(value, types) or isinstance(value, bool) and bool not in types:
            raise BadReport(f"{self.place}.{name}: {what} was expected, found {kind(value)}")
        return value

    def text(self, name):
        value = self.field(name, (str,), "text")
        return value and clean(value)

    def needed(self, name):
        value = self.text(name)
        if not value:
            raise BadReport(f"{self.place}.{name}: text was expected, found nothing")
        return value

    def number(self, name):
        """None also for what is not finite: JSON has no infinity, but Python's reader takes it."""
        value = self.field(name, (int, float), "a number")
        return value if value is not None and math.isfinite(value) else None

    def positive(self, name):
        value = self.number(name)
        return value if value is not None and value > 0 else None

    def flag(self, name):
        return self.field(name, (bool,), "true or false")

    def seconds(self, name):
        """A list of times."""
        values = self.field(name, (list,), "a list") or []
        if not all(isinstance(v, (int, float)) and v > 0 and math.isfinite(v) for v in values):
            raise BadReport(f"{self.place}.{name}: positive numbers were expected")
        return tuple(values)

    def object(self, name):
        return Checked({} if self.value.get(name) is None else self.value[name], f"{self.place}.{name}")

    def objects(self, name):
        values = self.field(name, (list,), "a list") or []
        return [Checked(v, f"{self.place}.{name}[{i}]") for i, v in enumerate(values)]


def kind(value):
    names = {dict: "an object", list: "a list", str: "text", bool: "true or false", type(None): "null"}
    return names.get(type(value), "a number")


def benchmark_of(kit):
    """The report of attncl-bench that one of `attncl report` holds; without it the devices, and why they have no results."""
    phases = {phase.text("name"): phase for phase in kit.objects("phases")}
    bench = phases.get("bench")
    if bench and bench.value.get("result") is not None:
        return bench.object("result")
    reason = f"its benchmark: {bench.text('reason') or bench.text('outcome')}" if bench else "attncl report did not reach its benchmark"
    found = phases["devices"].value.get("result") if "devices" in phases else None
    return Checked({"schema": SCHEMA, "program": "attncl report", "version": kit.text("version"), "date": kit.text("date"), "devices": [
        {"device": d.text("id"), "kind": "opencl", "type": (d.text("type") or "").lower(), "name": d.text("name"),
         "platform": d.text("platform"), "driver": d.text("driver_version"), "opencl": d.text("opencl_version"), "reason": reason}
        for d in (Checked(d, f"{kit.place}.devices[{i}]") for i, d in enumerate(found if isinstance(found, list) else []))]}, kit.place)


def load(path):
    """The report in PATH as a Checked object, its schema known to be ours.  `kit`: the file of `attncl report` it is from."""
    try:
        with open(path, encoding="utf-8") as file:
            value = json.load(file)
    except OSError as error:
        raise BadReport(f"{path}: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        raise BadReport(f"{path}: not a JSON report: {error}") from None
    report, kit = Checked(value, path), None
    if report.value.get("program") == "attncl report" and report.value.get("phases") is not None:
        report, kit = benchmark_of(report), report
    report.kit = kit
    found = report.value.get("schema")
    if found != SCHEMA or isinstance(found, bool):
        found = "without a schema (before 2)" if found is None else f"of schema {found!r}"
        raise BadReport(f"{path}: a report {found}; this program reads schema {SCHEMA}")
    return report


def clean(text):
    """Without what neither XML nor UTF-8 can hold: control characters, halves of pairs, noncharacters."""
    return re.sub("[\x00-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]", " ", text)


def plain(value):
    """A setting or an argument as one line of text."""
    return clean(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))
