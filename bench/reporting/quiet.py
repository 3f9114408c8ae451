# SPDX-License-Identifier: MIT
"""Whether the machine was left alone while a case was timed, from each round's median and load."""

SPREAD = 0.15   # from the fastest round's median to the middle one's, which a single slow round leaves alone
OTHERS = 0.10   # CPUs that others kept busy
SWITCHES = 50   # involuntary ones, a second, and others used half of OTHERS: a process's own threads interrupt each other too
STARVED = 0.15  # of the CPU time that a round with the same work got
TICK_S = 0.02   # two ticks of the kernel's accounting, which a round's busy time may be off by


def disturbance(rounds):
    """What disturbed ROUNDS, a list of {"median_s", "wall_s", "cpu_s", "busy_s", "switches"}; "" where nothing did."""
    rounds = [r for r in rounds if r.get("wall_s") and r.get("median_s")]
    if not rounds:
        return ""
    wall, medians = sum(r["wall_s"] for r in rounds), [r["median_s"] for r in rounds]
    others = sum(r["busy_s"] - r["cpu_s"] for r in rounds if r.get("busy_s"))
    switches = sum(r.get("switches") or 0 for r in rounds) / wall
    shares = [r["cpu_s"] / r["wall_s"] for r in rounds if r.get("cpu_s")]
    found = []
    if others - TICK_S * len(rounds) > OTHERS * wall:
        found.append(f"others used {others / wall:.1f} CPUs")
    if switches > SWITCHES and others > OTHERS / 2 * wall:
        found.append(f"interrupted {switches:.0f} times a second")
    if shares and min(shares) < (1 - STARVED) * max(shares) and max(r["wall_s"] for r in rounds) > 5 * TICK_S:
        found.append(f"got {min(shares):.2f} to {max(shares):.2f} CPUs")
    middle = sorted(medians)[len(medians) // 2]
    if middle > (1 + SPREAD) * min(medians):
        found.append(f"rounds differ by {100 * (middle / min(medians) - 1):.0f} %")
    return ", ".join(found)
