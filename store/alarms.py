"""The notifications that repeat until they are acknowledged, and their queries."""

import peewee

from models import Account, Model


class Alarm(Model):
    """What becomes of a notification that is pushed again until it is acknowledged."""

    notification_seq = peewee.IntegerField(primary_key=True)
    account = peewee.ForeignKeyField(Account, column_name="account_seq")
    state = peewee.TextField()
    ends_at = peewee.IntegerField(null=True)
    next_at = peewee.IntegerField(null=True)
    repeats = peewee.IntegerField()
    acknowledged_at = peewee.IntegerField(null=True)
    device_seq = peewee.IntegerField(null=True)
