"""Where a handler's body runs: in the loop, in a thread, or in a process of its own."""
