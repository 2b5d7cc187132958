-- To which devices a notification that is to be delivered later goes, if not to all that there are then.
ALTER TABLE notification ADD COLUMN device_ids TEXT;
