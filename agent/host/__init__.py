"""Collectors of the host: seven of the eight inventory sections, read from /proc, /sys and a few ioctls."""
