-- In PostgreSQL these indexes now order an account's and an alert's notifications: a page of them no longer reads all
-- accounts'. SQLite's are made anew as they were.
DROP INDEX notification_of_account;
CREATE INDEX notification_of_account ON notification (account_seq /*, seq*/);
DROP INDEX notification_failed_or_held;
CREATE INDEX notification_failed_or_held ON notification (account_seq /*, seq*/) WHERE status IN ('failed', 'held');
DROP INDEX notification_pending;
CREATE INDEX notification_pending ON notification (account_seq /*, seq*/) WHERE status = 'pending';
DROP INDEX notification_of_alert;
CREATE INDEX notification_of_alert ON notification (alert_seq /*, seq*/) WHERE alert_seq IS NOT NULL;
