"""Several processes of the server on one machine, as an installation for many nodes has them."""
