"""The project's own figures: windlass against a raw loop on the same engine, in the same process and the same run."""
