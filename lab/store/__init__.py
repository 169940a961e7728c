"""The store: Postgres and pgvector. The only package that imports psycopg."""
