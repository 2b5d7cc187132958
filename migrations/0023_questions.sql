-- Home looks for questions that wait for an answer; few notifications have buttons.
CREATE INDEX notification_with_buttons ON notification (account_seq, created_at) WHERE actions IS NOT NULL;
