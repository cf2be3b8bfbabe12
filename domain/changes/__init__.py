"""What differs between two inventories, section by section; `domain.diff` puts it in order."""
