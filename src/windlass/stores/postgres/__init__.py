"""Jobs in PostgreSQL: the same rooms as every other store, on asyncpg."""
