"""Bulk imports: a spreadsheet's rows are mapped, checked and upserted in batches, and every bad cell is named."""
