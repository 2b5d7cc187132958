-- A signed-in browser shows a code with which a phone signs in.
CREATE TABLE phone_link (
    session_hash BLOB PRIMARY KEY REFERENCES session ON DELETE CASCADE, -- of the browser that shows it
    code_hash BLOB NOT NULL UNIQUE,
    state TEXT NOT NULL CHECK (state IN ('shown', 'asked', 'confirmed', 'refused', 'used')),
    expires_at INTEGER NOT NULL,           -- of this state
    phone_hash BLOB UNIQUE,                -- of the secret in the cookie of the browser that asked; NULL until one did
    phone_name TEXT NOT NULL,              -- it and the next two: of that browser, '' until it asked
    phone_address TEXT NOT NULL,
    number TEXT NOT NULL                   -- shown on both, to compare
) STRICT, WITHOUT ROWID;
