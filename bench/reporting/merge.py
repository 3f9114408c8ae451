# SPDX-License-Identifier: MIT
"""Machines, their devices and baselines, and of each case the fastest report, out of any number of reports.

Reports of one machine and device are runs of the same thing: the one with the least median counts, because whatever
else a machine does only adds time; one that was not disturbed before one that was.  A case that was wrong in one report
stays wrong.
"""
import re
from dataclasses import dataclass, field

from . import quiet, read

# Where replacing "_" by a space is not enough.
FAMILIES = {
    "gelu": "GELU", "bias_gelu": "bias + GELU", "gemm": "GEMM", "bmm": "batched GEMM", "feed_forward": "feed-forward",
    "mha_labml": "multi-head attention (labml)", "mha_d2l": "multi-head attention (d2l)", "aft_local": "AFT-local",
    "aft_full": "AFT-full", "aft_simple": "AFT-simple", "aft_conv": "AFT-conv", "gmlp": "gMLP", "gmlp_block": "gMLP block",
    "feedback": "Feedback Transformer", "feedback_kv": "Feedback Transformer, kv", "gpt2": "GPT-2", "llama": "Llama", "gru": "GRU",
    "bahdanau": "Bahdanau decoder", "seq2seq": "seq2seq (Bahdanau)", "lm": "language model, forward", "lm_decode": "language model, sampling",
    "lm_prefill": "language model, prompt", "lm_step": "language model, step", "lm_start": "language model, start"}
FACTS = ("compute_units", "clock_mhz", "global_memory_bytes", "local_memory_bytes")
RATES = ("copy_bytes_per_s", "fma_flop_per_s", "to_device_bytes_per_s", "from_device_bytes_per_s")
LOAD = ("median_s", "wall_s", "cpu_s", "busy_s", "switches")
LATENCIES = ("launch_s", "launch_queued_s")


def named(family):
    return FAMILIES.get(family, family.replace("_", " "))


@dataclass
class Result:
    """One case on one device; quantities that are not known are None."""
    case: str
    suite: str
    family: str
    set: str
    headline: bool
    variant: str
    reference: bool  # a baseline's formulation as it was published
    sizes: dict
    outcome: str
    reason: str
    values: dict
    samples: tuple = ()
    equal: bool = True     # False: a baseline that computes less exactly, shown and not compared
    disturbed: str = ""    # by what

    def __getattr__(self, name):
        try:
            return self.values[name]
        except KeyError:
            raise AttributeError(name) from None

    @property
    def seconds(self):
        """The median, or the fastest run of a report that has no median."""
        return (self.median_s or self.min_s) if self.outcome == "ok" else None

    @property
    def small(self):
        """Launches bound it."""
        return self.set == "small"

    @property
    def group(self):
        """What the case is one size of."""
        name, layer = named(self.family), self.sizes.get("layer")
        if isinstance(layer, str):
            name += ", " + named(read.clean(layer))
        # A language model is always causal.
        return name + (", causal" if self.sizes.get("causal") is True and not layer else "")

    def remark(self):
        """What to say in place of a time."""
        if self.outcome == "wrong":
            return "WRONG: error %s, allowed %s; not timed" % tuple(
                "infinite or unknown" if x is None else f"{x:.2e}" for x in (self.error, self.error_limit))
        words = {"failed": "FAILED", "not run": "not run"}.get(self.outcome, "no time")
        return f"{words}: {self.reason}" if self.reason else words


@dataclass
class Device:
    """An OpenCL device, or one configuration of a baseline."""
    machine: "Machine"
    baseline: bool
    address: str
    type: str
    name: str
    facts: dict
    settings: dict
    program: str
    sizes: str
    reason: str = ""
    loop_limit: int = None
    roofline: dict = field(default_factory=dict)
    copies: dict = field(default_factory=dict)   # footprint -> bytes per second
    gemm: dict = field(default_factory=dict)     # provider -> FLOP per second
    results: dict = field(default_factory=dict)  # (case, variant) -> Result

    def title(self, machines=1):
        """Enough to tell it from the others in a legend."""
        title = self.name
        if not self.baseline:
            changed = ", ".join(f"{k}={v}" for k, v in self.settings.items() if k.startswith("ATTNCL_"))
            title = ", ".join(filter(None, (f"{self.address} {title}", self.facts.get("platform"), changed)))
        return f"{self.machine.name}: {title}" if machines > 1 else title

    def ok(self):
        """Timed results, those of suite `device` apart: they are the roofline's."""
        return [r for r in self.results.values() if r.seconds and r.suite != "device"]


@dataclass
class Machine:
    name: str
    host: dict
    label: str
    devices: list = field(default_factory=list)
    runs: list = field(default_factory=list)

    def own(self):
        return [d for d in self.devices if not d.baseline]

    def baselines_of(self, device):
        """Baselines on the same kind of CPU: a CPU is not measured against a GPU."""
        return [p for p in self.devices if p.baseline and (not p.type or not device.type or p.type == device.type)]


@dataclass
class Problem:
    device: Device
    where: str
    what: str
    outcome: str


@dataclass
class Joined:
    machines: list
    problems: list
    kits: list  # (machine, the file of `attncl report`)

    def own(self):
        return [d for m in self.machines for d in m.own()]


def host_of(report):
    host = report.object("host")
    texts = {name: " ".join((host.text(name) or "").split()) for name in ("os", "kernel", "cpu")}
    return {**texts, **{name: host.positive(name) for name in ("cores", "threads", "memory_bytes")}}


def same_host(a, b):
    """Of two reports: threads are a process's own, and memory may be counted in two ways."""
    def key(host):
        return [host[f] for f in ("os", "kernel", "cpu", "cores")] + [round((host["memory_bytes"] or 0) / 2**30)]
    return key(a) == key(b)


def machines_of(reports):
    """The machine each report is from, by label and host.  One without a label joins the only one like it."""
    machines, found = [], [None] * len(reports)
    for i in sorted(range(len(reports)), key=lambda i: not reports[i].text("label")):
        host, label = host_of(reports[i]), reports[i].text("label") or ""
        like = [m for m in machines if same_host(m.host, host) and (not label or m.label == label)]
        if len(like) != 1:
            like = [m for m in like if m.label == label]
        if not like:
            like = [Machine(label or host["cpu"] or "machine", host, label)]
            machines += like
        found[i] = like[0]
    return found


def name_machines(machines):
    """Names that differ, even where labels and CPUs are the same."""
    names = [m.name for m in machines]
    for i, m in enumerate(machines):
        if names.count(m.name) > 1:
            m.name += f" #{names[:i].count(names[i]) + 1}"


def result_of(entry):
    outcome = entry.text("outcome")
    if outcome not in read.OUTCOMES:
        raise read.BadReport(f"{entry.place}.outcome: {outcome!r} is none of {', '.join(read.OUTCOMES)}")
    wall, event, compiled = entry.object("wall"), entry.object("event"), entry.object("compile")
    memory, sizes = entry.object("memory"), entry.object("sizes")
    values = {name: wall.positive(name) for name in ("min_s", "q1_s", "median_s", "q3_s", "p95_s", "max_s")}
    values.update(event_s=event.positive("min_s"), cold_s=compiled.positive("cold_s"),
                  cached_s=compiled.positive("cached_s"), bound=entry.text("bound"))
    for name in ("error", "error_limit", "runs", "rounds"):
        values[name] = entry.number(name)
    for name in ("flop", "bytes", "gflop_s", "gb_s", "roofline_percent", "tokens", "tokens_per_s"):
        values[name] = entry.positive(name)
    for name in ("io", "weights", "activations", "scratch", "arena", "state"):
        values[name + "_bytes"] = memory.number(name + "_bytes")
    # Of a baseline the most that its tensors take, of ours all that a run needs.
    parts = [values[name + "_bytes"] for name in ("io", "weights", "arena", "state")]
    values["peak_bytes"] = memory.number("peak_bytes") or (sum(parts) if None not in parts else None)
    latency, sensors = entry.object("latency"), entry.object("sensors")
    values.update(token_s=latency.positive("median_s"), token_p95_s=latency.positive("p95_s"), p99_s=latency.positive("p99_s"),
                  tokens_timed=latency.number("n"), throttled=sensors.flag("throttled"))
    for name in ("clock_mhz", "power_w", "temperature_c"):
        values[name] = sensors.number(name)
    if outcome == "ok" and not values["min_s"]:
        raise read.BadReport(f"{entry.place}: outcome ok without wall.min_s")
    return Result(entry.needed("case"), entry.text("suite") or "", entry.text("family") or "other", entry.text("set") or "",
                  entry.flag("headline") or False, entry.text("variant") or "", entry.flag("reference") or False, sizes.value,
                  outcome, entry.text("reason") or "", values, entry.seconds("samples_s"), entry.flag("equal") is not False,
                  quiet.disturbance([{name: x.number(name) for name in LOAD} for x in entry.objects("by_round")]))


def program_of(report):
    return " ".join(filter(None, (report.text("program"), report.text("version")))) or "unknown program"


def device_of(machine, report, entry):
    """The machine's device that ENTRY describes: the one known from other reports, or a new one."""
    facts = {name: entry.text(name) for name in ("platform", "vendor", "driver", "opencl")}
    facts.update({name: entry.positive(name) for name in FACTS})
    kind, program = entry.needed("kind"), program_of(report)
    if kind not in ("opencl", "baseline", "peer"):
        raise read.BadReport(f"{entry.place}.kind: {kind!r} is neither opencl nor baseline")
    if kind == "opencl" and report.text("revision"):
        program += f" ({report.text('revision')})"
    settings = {read.clean(str(k)): read.plain(v) for k, v in entry.object("settings").value.items() if v is not None}
    new = Device(machine, kind != "opencl", entry.needed("device"), entry.text("type") or "",
                 entry.text("name") or entry.needed("device"), facts, settings, program, entry.text("sizes") or "")
    def key(device):
        """Without clock and memory, since some drivers report the free memory."""
        facts = {name: value for name, value in device.facts.items() if name not in ("clock_mhz", "global_memory_bytes")}
        return device.baseline, device.address, device.name, facts, device.settings, device.program
    for known in machine.devices:
        if key(known) == key(new):
            return known
    machine.devices.append(new)
    return new


def take(best, rates, name, value):
    """The better of what is known: the highest of rates, the lowest of latencies."""
    if value:
        best[name] = (max if rates else min)(value, best.get(name, value))


def add_roofline(device, roofline):
    for name in RATES + LATENCIES:
        take(device.roofline, name in RATES, name, roofline.positive(name))
    for copy in roofline.objects("copies"):
        footprint = copy.positive("footprint_bytes")
        if footprint:
            take(device.copies, True, footprint, copy.positive("bytes_per_s"))
    for gemm in roofline.objects("gemm"):
        take(device.gemm, True, gemm.text("provider") or "unknown", gemm.positive("flop_per_s"))


def completed(fast, slow):
    """FAST with what only SLOW has, a run with a roofline or compile times; a share of the roof is over the time."""
    if fast.roofline_percent is None and slow.roofline_percent:
        slow.values["roofline_percent"] *= slow.seconds / fast.seconds
    fast.values = {k: slow.values[k] if v is None else v for k, v in fast.values.items()}
    return fast


def add_results(device, entry, problems):
    """In the order of the case list, whichever report comes first: a new case stands behind the one before it in its report."""
    order, at = list(device.results), 0
    for result in map(result_of, entry.objects("results")):
        key = (result.case, result.variant)
        known = device.results.get(key)
        if known is None:
            order.insert(at, key)
        at = order.index(key) + 1
        if result.outcome != "ok":
            problems.append(Problem(device, " ".join(filter(None, (result.case, result.variant))),
                                    result.remark(), result.outcome))
        rank = ("wrong", "ok", "failed", "not run").index
        if known is None or rank(result.outcome) < rank(known.outcome):
            device.results[key] = result
        elif result.seconds and known.seconds:
            fast, slow = sorted((result, known), key=lambda r: (r.disturbed != "", r.seconds))
            device.results[key] = completed(fast, slow)
    device.results = {key: device.results[key] for key in order}


def run_of(path, report):
    """What the page says of a report's making."""
    command = report.field("command", (list, str), "a list") or ""
    return {"file": path, "date": report.text("date"), "threads": host_of(report)["threads"],
            "command": " ".join(map(quoted, command)) if isinstance(command, list) else read.clean(command),
            "program": program_of(report),
            "revision": report.text("revision")}


def join(paths):
    reports, problems = [read.load(path) for path in paths], []
    owners = machines_of(reports)
    for path, report, machine in zip(paths, reports, owners):
        machine.runs.append(run_of(path, report))
        for entry in report.objects("devices"):
            device = device_of(machine, report, entry)
            reason = entry.text("reason")
            device.reason = reason or device.reason
            device.loop_limit = entry.number("loop_limit") or device.loop_limit
            if reason:
                problems.append(Problem(device, "all cases", f"not run: {reason}", "not run"))
            add_roofline(device, entry.object("roofline"))
            add_results(device, entry, problems)
    machines = list({id(m): m for m in owners}.values())
    name_machines(machines)
    return Joined(machines, problems, [(m, r.kit) for m, r in zip(owners, reports) if r.kit])


def quoted(argument):
    text = read.plain(argument)
    return text if re.fullmatch(r"[\w@%+=:,./-]+", text) else "'" + text.replace("'", "'\\''") + "'"
