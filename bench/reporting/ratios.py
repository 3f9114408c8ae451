# SPDX-License-Identifier: MIT
"""The library's times against the peers' on the same machine: peer's time / ours, above 1 the library is faster."""
from dataclasses import dataclass

from . import units


@dataclass
class Against:
    """A case of ours and what each peer took; `best` is the fastest of them."""
    ours: object
    peers: dict  # name of the peer -> Result

    @property
    def best(self):
        return min(self.peers, key=lambda name: self.peers[name].seconds)

    def ratio(self, name=None):
        return self.peers[name or self.best].seconds / self.ours.seconds


def peer_name(peer, result):
    return f"{peer.name}, {result.variant}" if result.variant else peer.name


def against(device):
    """Against for each case that a peer has timed too, and the peers' names in order."""
    found, names = [], []
    peers = device.machine.peers_of(device)
    for ours in device.ok():
        times = {}
        for peer in peers:
            for r in peer.ok():
                if r.case == ours.case:
                    name = peer_name(peer, r)
                    if name not in times or r.seconds < times[name].seconds:
                        times[name] = r
                    names += [name] if name not in names else []
        if times:
            found.append(Against(ours, times))
    return found, names


@dataclass
class Group:
    """Cases that differ in size only, in the order of the report."""
    name: str
    cases: list  # Result, of one device
    pairs: list  # Against

    def spread(self):
        """The ratios to the fastest peer: "1.31", or "1.31 to 2.20"."""
        values = sorted(p.ratio() for p in self.pairs)
        if not values:
            return units.ABSENT
        first, last = units.ratio(values[0]), units.ratio(values[-1])
        return first if first == last else f"{first} to {last}"

    def lowest(self):
        return min((p.ratio() for p in self.pairs), default=None)

    def mean(self):
        return units.geometric_mean([p.ratio() for p in self.pairs]) if self.pairs else None

    def share(self):
        """Of the roofline: lowest and highest."""
        values = sorted(r.roofline_percent for r in self.cases if r.seconds and r.roofline_percent)
        if not values:
            return units.ABSENT
        first, last = f"{values[0]:.0f}", f"{values[-1]:.0f}"
        return f"{first} %" if first == last else f"{first} to {last} %"


def groups(device):
    pairs, _ = against(device)
    found = {}
    for r in device.results.values():
        found.setdefault(r.group, Group(r.group, [], [])).cases.append(r)
    for p in pairs:
        found[p.ours.group].pairs.append(p)
    return list(found.values())
