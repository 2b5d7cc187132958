"""The buttons whose press a device sends to us, the answers, and their queries."""

import peewee

from models import Model
from store.notifications import Notification


class Button(Model):
    """A button of a notification on one device, found by the hash of the token in its address."""

    token_hash = peewee.BlobField(primary_key=True)
    notification = peewee.ForeignKeyField(Notification, column_name="notification_seq", on_delete="CASCADE")
    device_seq = peewee.IntegerField()
    position = peewee.IntegerField(null=True)
    expires_at = peewee.IntegerField()


class ButtonAnswer(Model):
    """The first answer to a notification, which is the only one."""

    notification_seq = peewee.IntegerField(primary_key=True)
    position = peewee.IntegerField()
    answered_at = peewee.IntegerField()
    device_seq = peewee.IntegerField(null=True)

    class Meta:
        table_name = "answer"
