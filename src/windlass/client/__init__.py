"""The client: enqueue, look, operate. It sees a store through its contract only."""
