"""The list of alerts: order, `notificationCount`, `lastTriggeredAt`."""

from store.database import transaction
from tests.support.accounts import seq_of


def test_an_alert_is_listed_with_the_fields_of_the_specification_and_no_other(service, owner, moved_clock):
    created_at = moved_clock.ms
    hook = service.alert("--icon", "server", "--color", "#FF0000", "--title", "secret {{ title }}")
    moved_clock.advance(5)
    hook.post({})
    answer = owner.get("/alerts")
    assert answer.status_code == 200
    assert answer.json == {
        "ok": True,
        "alerts": [
            {
                "id": hook.id,
                "name": "Backups",
                "icon": "server",
                "color": "#FF0000",
                "isActive": True,
                "notificationCount": 1,
                "lastTriggeredAt": moved_clock.ms,
                "createdAt": created_at,
            }
        ],
    }


def test_every_alert_is_listed_newest_first_however_many_there_are(service, owner):
    with transaction(seq_of()):
        for number in range(250):  # all in the same millisecond
            service.alert(name=str(number))
    assert [alert["name"] for alert in owner.alerts()] == [str(number) for number in range(249, -1, -1)]
