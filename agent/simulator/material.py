"""Identities out of a seed: the same fleet has the same serials, UUIDs and addresses on every run."""

import hashlib
from dataclasses import dataclass
from typing import Final
from uuid import UUID

_ALPHABET: Final = "0123456789ABCDEFGHJKLMNPQRSTUVWXYZ"
# Organisations that NVIDIA's (Mellanox's) and Intel's adapters carry in their addresses.
_NVIDIA_OUIS: Final = (
    0x0C42A1,
    0x1070FD,
    0x58A2E1,
    0x946DAE,
    0xA088C2,
    0xB83FD2,
    0xB8CEF6,
    0xC470BD,
    0xE09D73,
    0xE8EBD3,
)
_INTEL_OUIS: Final = (0x3CFDFE, 0x40A6B7, 0x6CFE54, 0x90E2BA, 0xA0369F, 0xB49691, 0xF8F21E)
_PER_OUI: Final = 1 << 24
_SLOTS_MAX: Final = 16
_NODES_MAX: Final = 1 << 20
_SPREAD: Final = 0x9E3779B1  # odd and no multiple of 3, 5 or 7: it permutes the addresses of all those organisations


@dataclass(frozen=True, slots=True)
class Material:
    """The identities of one node of a seed's fleet. `what` names the part, with its place and generation."""

    seed: int
    node: int

    def uuid(self, what: str) -> str:
        """Return a version 4 UUID."""
        return str(UUID(bytes=self._bytes(what, 16), version=4))

    def serial(self, what: str, length: int) -> str:
        """Return a serial of digits and capital letters."""
        number = int.from_bytes(self._bytes(what, 32), "big")
        return "".join(_ALPHABET[number // len(_ALPHABET) ** place % len(_ALPHABET)] for place in range(length))

    def digits(self, what: str, length: int) -> str:
        """Return a serial of digits, as boards of GPUs have."""
        return str(int.from_bytes(self._bytes(what, 16), "big"))[-length:].rjust(length, "1")

    def hexadecimal(self, what: str, octets: int) -> str:
        """Return lower-case hexadecimal digits."""
        return self._bytes(what, octets).hex()

    def mac(self, slot: int, generation: int, *, intel: bool) -> str:
        """Return the address of the adapter in a slot (below 16); no two adapters of a fleet share one."""
        ouis = _INTEL_OUIS if intel else _NVIDIA_OUIS
        space = len(ouis) * _PER_OUI
        place = (generation * _NODES_MAX + self.node) * _SLOTS_MAX + slot
        start = int.from_bytes(hashlib.blake2b(f"{self.seed}/addresses".encode(), digest_size=8).digest(), "big")
        number = (start + place * _SPREAD) % space
        octets = (ouis[number // _PER_OUI] << 24 | number % _PER_OUI).to_bytes(6, "big")
        return octets.hex(":")

    def _bytes(self, what: str, octets: int) -> bytes:
        return hashlib.blake2b(f"{self.seed}/{self.node}/{what}".encode(), digest_size=octets).digest()
