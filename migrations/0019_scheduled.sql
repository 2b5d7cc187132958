-- What an account is to send next is found however much it or another account is to send later.
DROP INDEX notification_scheduled_of_account;
CREATE INDEX notification_scheduled_of_account ON notification (account_seq, deliver_at)
    WHERE deliver_at IS NOT NULL AND status = 'held';
