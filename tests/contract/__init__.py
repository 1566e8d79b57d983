"""The contract suite: the same tests on every store."""
