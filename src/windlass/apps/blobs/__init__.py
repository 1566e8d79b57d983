"""Blobs: bytes under the name of their own SHA-256, in a folder or at S3: written whole or not at all."""
