"""The same facts in the order that suits one job description."""
