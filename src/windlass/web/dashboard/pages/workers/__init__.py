"""Workers: who is there, what each is doing, and how it is."""
