"""The kernel log of this machine: followed, and the faults in it kept over restarts of the agent."""
