"""A random walk through reports, bookings, pools, trust and labels, beside a plain model of rules 2 to 6."""
