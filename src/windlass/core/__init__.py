"""The law: what a job is and how it may move. Pure: no I/O, no clock, no asyncio; time and chance are arguments."""
