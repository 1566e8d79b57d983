"""What resumes say, in several languages: headings, months, places, titles. Tables and the little that reads them."""
