"""The hands: claim, run, decide, apply, tell. They see a store through its contract only."""
