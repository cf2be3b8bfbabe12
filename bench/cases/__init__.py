"""Every recorded file of a folder of cases, through the product's own code, for a person to check line by line."""
