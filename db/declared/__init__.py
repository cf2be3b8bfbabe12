"""How the rows behind each GraphQL type are read: what differs from a like-named column, once, for every execution.

Relations name each other's row classes, so whoever needs one declaration gets them all.
"""

from db.declared import allocations, capacity, conditions, devices, events, labels, nodes, places, snapshots, summary

__all__ = [
    "allocations",
    "capacity",
    "conditions",
    "devices",
    "events",
    "labels",
    "nodes",
    "places",
    "snapshots",
    "summary",
]
