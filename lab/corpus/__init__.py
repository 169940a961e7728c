"""Documents on their way into the store: validate, read, chunk, link, find twins, ingest."""
