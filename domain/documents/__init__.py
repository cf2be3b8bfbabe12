"""The typed documents of the eight inventory sections (NodeInventory v1).

The descriptions written here are the ones that the GraphQL schema shows: a field is declared once.
"""
