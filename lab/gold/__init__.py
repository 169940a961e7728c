"""Gold sets: questions and judged spans, their files, their import and their check against a collection."""
