"""`demo --serve`: a shop whose jobs run while somebody looks at them in the dashboard."""
