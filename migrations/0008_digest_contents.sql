-- Deleting a notification rewrites the digest that it went out in, which is found by this index.
CREATE INDEX held_in_digest ON held (digest_seq) WHERE digest_seq IS NOT NULL;
