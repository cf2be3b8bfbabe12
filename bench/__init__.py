"""Programs that measure the product or show what it concludes; nothing of the product imports them."""
