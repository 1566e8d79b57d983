"""How well a resume suits a job description, part by part, with reasons."""
