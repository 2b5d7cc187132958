-- Whether History shows an account's notifications in rows of one line.
ALTER TABLE account ADD COLUMN has_dense_rows INTEGER NOT NULL DEFAULT 0 CHECK (has_dense_rows IN (0, 1));
