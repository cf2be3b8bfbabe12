"""Whether the packages that were installed wait for a reboot.

Only Debian and what descends from it say so, by a file that does not outlive the boot (update-notifier-common,
unattended-upgrades). A container has the file of its own image, which says nothing of the host.
"""

from typing import Final

from agent.host.answers import Missing
from agent.host.files import Source, raw_text

_MECHANISM: Final = "/var/lib/dpkg/status"
_FLAG: Final = "/run/reboot-required"
_PACKAGES: Final = "/run/reboot-required.pkgs"
_SHOWN_MAX: Final = 16


def says_reboots(source: Source, *, is_container: bool) -> bool:
    """Say whether this host would tell."""
    return not is_container and source.exists(_MECHANISM)


def reboot_required(source: Source) -> str | None:
    """Return who asked for a reboot, in words; None when nobody did."""
    if not source.exists(_FLAG):
        return None
    content = raw_text(source, _PACKAGES)
    names = () if isinstance(content, Missing) else tuple(sorted({line.strip() for line in content.split("\n")} - {""}))
    more = f" and {len(names) - _SHOWN_MAX} more" if len(names) > _SHOWN_MAX else ""
    return f"asked for by {', '.join(names[:_SHOWN_MAX])}{more}" if names else "a package asks for a reboot"
