"""The composition root: application, settings, authentication, limits, console and the server's command line."""
