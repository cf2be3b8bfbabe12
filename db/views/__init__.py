"""How rows are read: from one declaration per kind, whole selections are compiled and single rows loaded."""
