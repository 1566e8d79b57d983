"""The memory: four stores with the same rooms behind one contract. Each is imported only when its URL is used."""
