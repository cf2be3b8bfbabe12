"""Versions of installed Debian packages, from dpkg's own status file (deb822) and without running dpkg."""

import re
from collections.abc import Iterable, Mapping
from itertools import chain


def installed_versions(lines: Iterable[str]) -> dict[str, str]:
    """Return name and version of every installed package, from the lines of a dpkg status file."""
    versions: dict[str, str] = {}
    fields: dict[str, str] = {}
    for line in chain(lines, [""]):
        if not line.strip():
            # `hold ok installed` is installed too.
            if fields.get("Status", "").endswith(" ok installed") and "Version" in fields:
                versions[fields.get("Package", "")] = fields["Version"]
            fields = {}
        elif not line[0].isspace():
            name, _, value = line.partition(":")
            fields[name] = value.strip()
    return versions


def version_of(package: str, versions: Mapping[str, str]) -> str:
    """Return the version of the package, also of one named after its branch (`nvidia-imex-580`); else empty."""
    branches = sorted(name for name in versions if re.fullmatch(rf"{re.escape(package)}-\d+", name))
    return next((versions[name] for name in (package, *reversed(branches)) if name in versions), "")
