"""From visible text to JSON Resume: by rules, or by a model that is not trusted."""
