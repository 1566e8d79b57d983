"""Routes: start an import, see how it goes, download what was wrong."""
