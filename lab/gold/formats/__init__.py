"""Gold sets from other people's files, and as other people's files: a module a format, each with what it reads and what it writes."""
