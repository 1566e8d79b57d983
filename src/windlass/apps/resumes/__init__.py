"""Resumes: a document is read and structured once; tailored resumes with a score that is explained are made of that."""
