"""The only home of SQL: tables, the engine, one store per noun, outbox and event log. It decides nothing."""
