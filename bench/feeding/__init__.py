"""Measuring the feed: who subscribes, who commits, the servers between them, and what is seen."""
