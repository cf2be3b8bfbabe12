"""What the kernel says about an interface only when it is asked: ethtool ioctls and one rtnetlink query.

Source: `linux/ethtool.h`, `linux/sockios.h`, `linux/rtnetlink.h` and `linux/if_link.h`.
"""

import ctypes
import errno
import fcntl
import os
import socket
import struct
from collections.abc import Iterator
from typing import Final

_SIOCETHTOOL: Final = 0x8946
_GDRVINFO: Final = 0x03
_GPERMADDR: Final = 0x20
_DRVINFO_BYTES: Final = 196
_FIRMWARE: Final = slice(4 + 32 + 32, 4 + 32 + 32 + 32)  # after cmd, driver and version
_ADDRESS_BYTES_MAX: Final = 32
_NAME_BYTES_MAX: Final = 15

_RTM_GETLINK: Final = 18
_NLMSG_ERROR: Final = 2
_NLM_F_REQUEST: Final = 1
_IFLA_IFNAME: Final = 3
_IFLA_VFINFO_LIST: Final = 22
_IFLA_EXT_MASK: Final = 29
_IFLA_VF_MAC: Final = 1
_RTEXT_FILTER_VF: Final = 1
_NEST_MASK: Final = 0x3FFF
_LINK_HEADER_BYTES: Final = 16
_MESSAGE_HEADER_BYTES: Final = 16
_REPLY_BYTES_MAX: Final = 1 << 20
_REPLY_SECONDS_MAX: Final = 2.0
_MAC_BYTES: Final = 6


def permanent_address(interface: str) -> str:
    """Return the address the hardware was made with as colon-separated bytes; raises OSError."""
    reply = _ethtool(interface, struct.pack("=II", _GPERMADDR, _ADDRESS_BYTES_MAX) + bytes(_ADDRESS_BYTES_MAX))
    (size,) = struct.unpack_from("=I", reply, 4)
    return reply[8 : 8 + size].hex(":")


def firmware_version(interface: str) -> str:
    """Return the firmware version of the interface's driver information; raises OSError."""
    reply = _ethtool(interface, struct.pack("=I", _GDRVINFO) + bytes(_DRVINFO_BYTES - 4))
    return reply[_FIRMWARE].split(b"\0", 1)[0].decode("utf-8", "replace")


def _ethtool(interface: str, request: bytes) -> bytes:
    name = _name(interface)
    buffer = ctypes.create_string_buffer(request, len(request))
    # struct ifreq: the name, then the pointer, in 40 bytes on every 64-bit Linux.
    request_frame = struct.pack("16sP16x", name, ctypes.addressof(buffer))
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        fcntl.ioctl(control.fileno(), _SIOCETHTOOL, request_frame)
    return buffer.raw


def _name(interface: str) -> bytes:
    name = interface.encode()
    if len(name) > _NAME_BYTES_MAX:
        raise OSError(errno.ENODEV, "no interface has so long a name")
    return name


def vf_macs(interface: str) -> str:
    """Return the MACs given to the interface's virtual functions as `0=52:54:…,1=…`; raises OSError.

    They stay the same while a function's own interface moves into a container; a function without one is left out.
    """
    attributes = _attribute(_IFLA_IFNAME, _name(interface) + b"\0")
    attributes += _attribute(_IFLA_EXT_MASK, struct.pack("=I", _RTEXT_FILTER_VF))
    body = bytes(_LINK_HEADER_BYTES) + attributes
    header = struct.pack("=IHHII", _MESSAGE_HEADER_BYTES + len(body), _RTM_GETLINK, _NLM_F_REQUEST, 1, 0)
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE) as channel:
        channel.settimeout(_REPLY_SECONDS_MAX)
        channel.send(header + body)
        reply = channel.recv(_REPLY_BYTES_MAX)
    _, kind = struct.unpack_from("=IH", reply)
    if kind == _NLMSG_ERROR:
        (code,) = struct.unpack_from("=i", reply, _MESSAGE_HEADER_BYTES)
        raise OSError(-code, os.strerror(-code))
    return ",".join(f"{index}={mac}" for index, mac in sorted(parse_vf_macs(reply)))


def parse_vf_macs(message: bytes) -> Iterator[tuple[int, str]]:
    """Yield (function, MAC) from one RTM_NEWLINK message."""
    for kind, payload in _attributes(message[_MESSAGE_HEADER_BYTES + _LINK_HEADER_BYTES :]):
        if kind != _IFLA_VFINFO_LIST:
            continue
        for _, function in _attributes(payload):
            for inner, value in _attributes(function):
                # struct ifla_vf_mac: the function's number, then 32 bytes of address.
                if inner == _IFLA_VF_MAC and any(value[4 : 4 + _MAC_BYTES]):
                    yield struct.unpack_from("=I", value)[0], value[4 : 4 + _MAC_BYTES].hex(":")


def _attribute(kind: int, payload: bytes) -> bytes:
    size = 4 + len(payload)
    return struct.pack("=HH", size, kind) + payload + bytes(-size % 4)


def _attributes(content: bytes) -> Iterator[tuple[int, bytes]]:
    offset = 0
    while offset + 4 <= len(content):
        size, kind = struct.unpack_from("=HH", content, offset)
        if size < 4:  # noqa: PLR2004 - the header's own size: anything less would never end
            return
        yield kind & _NEST_MASK, content[offset + 4 : offset + size]
        offset += size + (-size % 4)
