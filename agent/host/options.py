"""What an operator tells the host collectors: places and names that no probe can guess."""

import msgspec


class HostOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Configured places; None means that the node was not asked, an empty tuple that it has none."""

    image_dirs: tuple[str, ...] = ()
    """Folders whose entries are cached images."""
    weights_dirs: tuple[str, ...] | None = None
    """Folders whose entries are model weights."""
    engine_dirs: tuple[str, ...] | None = None
    """Python environments that may hold inference engines."""
    fabrics: dict[str, tuple[str, ...]] = {}
    """Operator's name of a fabric and the node's RDMA devices on it."""
