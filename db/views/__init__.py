"""How rows are read: one declaration per kind of row, from which whole selections are compiled and single rows loaded."""
