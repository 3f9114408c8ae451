# SPDX-License-Identifier: MIT
"""The report's figures as tables of the page."""
from . import ratios, read, units
from .html import el, table


def devices(joined):
    """The roofline's figures: a column per device."""
    own = [d for d in joined.own() if d.roofline or d.gemm or d.results]
    if not own:
        return None

    def line(name, show):
        return [name] + [show(d) for d in own]

    def rate(name, unit):
        return lambda d: units.per_second(d.roofline.get(name), unit)

    def latency(name):
        return lambda d: units.seconds(d.roofline.get(name))
    rows = [line("copy bandwidth", rate("copy_bytes_per_s", "B/s")),
            line("FMA peak", rate("fma_flop_per_s", "FLOP/s"))]
    rows += [line(f"GEMM, {p}", lambda d, p=p: units.per_second(d.gemm.get(p), "FLOP/s"))
             for p in dict.fromkeys(p for d in own for p in d.gemm)]
    rows += [line("launch and wait", latency("launch_s")), line("launch in a queue", latency("launch_queued_s")),
             line("to the device", rate("to_device_bytes_per_s", "B/s")),
             line("from the device", rate("from_device_bytes_per_s", "B/s"))]
    rows += [line("compute units", lambda d: units.count(d.facts["compute_units"])),
             line("clock, MHz", lambda d: units.count(d.facts["clock_mhz"])),
             line("memory", lambda d: units.memory(d.facts["global_memory_bytes"])),
             line("local memory", lambda d: units.memory(d.facts["local_memory_bytes"])),
             line("cases", lambda d: d.sizes or units.ABSENT)]
    return table(["measured"] + [d.title(len(joined.machines)) for d in own], rows)


def side_by_side(joined, base=None):
    """Medians: a row per case, a column per device, the fastest of a row in bold; with BASE, its time over each other's."""
    own, n = [d for d in joined.own() if d.results], len(joined.machines)
    others = [d for d in own if d is not base] if base else []
    rows = []
    for case in dict.fromkeys(r.case for d in own for r in d.results.values()):
        found = [d.results.get((case, "")) for d in own]
        times = [r.seconds if r else None for r in found]
        least = min(filter(None, times), default=None)
        rows.append([case] + [
            el("td", el("b", units.ms(t)) if t and t == least and len(own) > 1
               else units.ms(t) if t else r.outcome if r else units.ABSENT,
               class_="number" + (" bad" if r and r.outcome in ("wrong", "failed") else ""))
            for r, t in zip(found, times)] + [units.ratio(ratios.to_device(d.results.get((case, "")), base)) for d in others])
    return table(["case, ms"] + [d.title(n) for d in own] + [f"{base.title(n)} / {d.title(n)}" for d in others], rows)


def ratio_cell(r):
    return el("td", units.ratio(r), class_="number " + ("slower" if r < 1 else "faster"))


def ratios_of(device, small=False):
    """Medians; the interval is that of the ratio to the fastest baseline."""
    pairs = ratios.against(device, small)
    if not pairs:
        return None
    rows, names = [], ratios.sides(pairs)
    for p in pairs:
        cells = [p.ours.case, units.ms(p.ours.seconds), units.ms(p.ours.p95_s), units.count(p.ours.runs)]
        for side in names:
            cells += [units.ms(p.sides[side][1].seconds), ratio_cell(p.ratio(side))] if side in p.sides else [units.ABSENT] * 2
        rows.append(cells + [units.interval(p.interval()) or units.ABSENT, el("td", ", ".join(filter(None, (
            p.which(), p.disturbed and "disturbed: " + p.disturbed))))])
    return table(["case", "ours, ms", "95th percentile", "runs"] + [h for s in names for h in (s + ", ms", "ratio")] +
                 ["95 % interval", "fastest baseline"], rows)


def latencies(device):
    """Of the tokens of a decoder."""
    found = [r for r in device.ok() if r.p99_s]
    return table(["case", "median", "95th percentile", "99th percentile", "tokens timed"], [
        [r.case, *map(units.seconds, (r.token_s, r.token_p95_s, r.p99_s)), units.count(r.tokens_timed)]
        for r in found]) if found else None


def state(device):
    """Clock, power and temperature while the cases ran."""
    found = [r for r in device.ok() if any(x is not None for x in (r.clock_mhz, r.power_w, r.temperature_c, r.throttled))]
    return table(["case", "clock, MHz", "power, W", "°C", "throttled"], [
        [r.case, *map(units.short, (r.clock_mhz, r.power_w, r.temperature_c)),
         {None: units.ABSENT, True: "yes", False: "no"}[r.throttled]] for r in found]) if found else None


def memory(device):
    kinds = ("io", "weights", "activations", "scratch", "arena", "state")
    return table(["case", "inputs, outputs", "weights", "activations", "scratch", "arena", "state", "compiled cold", "cached"], [
        [r.case] + [units.memory(r.values[k + "_bytes"]) for k in kinds] + [units.seconds(r.cold_s), units.seconds(r.cached_s)]
        for r in device.ok()])


def error(r):
    if r.error is None or r.error_limit is None:
        return "not checked" if r.error_limit is None else "infinite"
    return f"{r.error:.1e} ≤ {r.error_limit:.1e}"


def results(device):
    """Every case, those without a time too."""
    head = ["case", "median ms", "p95", "min", "q3 – q1", "device ms", "GFLOP/s", "GB/s", "of the roof", "bound", "tokens/s",
            "error ≤ limit", "runs"]
    rows = []
    for r in device.results.values():
        name = " ".join(filter(None, (r.case, f"({r.variant})" if r.variant else "")))
        if not r.seconds:
            remark = el("td", r.remark(), colspan=str(len(head) - 1), class_="remark")
            rows.append(("absent" if r.outcome == "not run" else "bad", [name, remark]))
            continue
        spread = r.q3_s - r.q1_s if r.q3_s and r.q1_s else None
        rows.append([name, units.ms(r.seconds), units.ms(r.p95_s), units.ms(r.min_s), units.ms(spread), units.ms(r.event_s),
                     units.short(r.gflop_s), units.short(r.gb_s), units.percent(r.roofline_percent),
                     r.bound or units.ABSENT, units.short(r.tokens_per_s), error(r),
                     units.count(r.runs)])
    return table(head, rows)


def origin(machine, n):
    """What the machine is, what ran on it, and with which commands."""
    host = machine.host
    facts = [("CPU", host["cpu"]), ("system", ", ".join(filter(None, (host["os"], host["kernel"])))),
             ("logical CPUs", host["cores"] and f"{host['cores']:.0f}"),
             ("usable threads", host["threads"] and f"{host['threads']:.0f}"),
             ("memory", host["memory_bytes"] and units.memory(host["memory_bytes"]))]
    runs = [[r["program"], r["revision"] or units.ABSENT, r["date"] or units.ABSENT,
             units.count(r["threads"]),
             el("td", el("code", r["command"] or "not recorded"))] for r in machine.runs]
    used = [[d.title(), el("td", ", ".join(filter(None, (
        d.facts["platform"], d.facts["driver"] and f"driver {d.facts['driver']}", d.facts["opencl"]))) or d.program),
             el("td", ", ".join(f"{k} {v}" for k, v in d.settings.items()) or "none stated"), el("td", d.sizes or units.ABSENT)] for d in machine.devices]
    return el("div", el("h3", machine.name) if n > 1 else None,
              el("dl", [[el("dt", name), el("dd", value)] for name, value in facts if value]),
              table(["program", "revision", "date", "threads", "command"], runs, words=5),
              table(["device or baseline", "driver or version", "settings", "sizes"], used, words=4))


def phases(kit):
    """How the phases of `attncl report` ended."""
    rows = []
    for phase in kit.objects("phases"):
        outcome = ", ".join(filter(None, (phase.text("outcome"), phase.text("signal"), phase.text("reason"))))
        log = phase.field("log", (list,), "a list") or []
        row = [phase.text("name") or units.ABSENT, outcome, units.seconds(phase.number("seconds")),
               el("td", read.plain(log[-1]) if log else units.ABSENT)]
        rows.append(row if outcome == "ok" else ("bad", row))
    return table(["phase", "outcome", "time", "last line of the log"], rows, words=2)


def kernels(kit):
    """What the driver's compiler made of each program; several specialisations of a file are rows of their own."""
    rows = []
    for phase in kit.objects("phases"):
        for program in phase.objects("programs"):
            macros, log = program.text("macros") or "", program.text("log") or ""
            for kernel in program.objects("kernels") or [read.Checked({}, program.place)]:
                spill = kernel.number("spill_bytes")
                row = [kernel.text("name") or "did not build", program.text("file") or "", units.seconds(program.number("build_s")),
                       *[units.ABSENT if kernel.number(n) is None else f"{kernel.number(n):.0f}"
                         for n in ("work_group", "local_bytes", "private_bytes", "spill_bytes")],
                       el("td", el("code", macros.replace("#define ", ""))), el("td", log)]
                rows.append(("bad", row) if spill or not kernel.value else row)
    return table(["kernel", "file", "build", "work-group", "local bytes", "private bytes", "spill bytes", "macros", "log"], rows,
                 words=2) if rows else None


def log_of(kit):
    """The library's log of every phase: the device, probes with their errors, choices and warnings; and what failed."""
    lines = []
    for phase in kit.objects("phases"):
        for name in ("output", "log"):
            lines += [read.plain(line) for line in phase.field(name, (list,), "a list") or []]
    return el("pre", "\n".join(line for line in lines if ": debug: " not in line)) if lines else None
