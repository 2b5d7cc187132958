"""The list of alerts: order, `notificationCount`, `lastTriggeredAt`."""

import models
from store.database import EVERYBODY, transaction

CREATED_AT = 1_795_255_200_000


def create(number, account=1, **columns):
    """Store an alert; accounts are numbered in the order of their making."""
    with transaction(EVERYBODY):
        models.Alert.create(
            **{
                "id": f"alert-{number}",
                "account": account,
                "short_code": f"code{number:03}",
                "name": f"Alert {number}",
                "icon": "bell",
                "color": "#3B82F6",
                "title_template": "secret {{ title }}",
                "body_template": None,
                "frequency": "instant",
                "ignores_quiet_hours": 0,
                "is_active": 1,
                "notification_count": 0,
                "last_triggered_at": None,
                "created_at": CREATED_AT + number,
                "switched_on_at": CREATED_AT + number,
            }
            | columns
        )


def test_an_alert_is_listed_with_the_fields_of_the_specification_and_no_other(owner):
    create(1, icon="server", color="#FF0000", notification_count=7, last_triggered_at=CREATED_AT + 99)
    answer = owner.get("/alerts")
    assert answer.status_code == 200
    assert answer.json == {
        "ok": True,
        "alerts": [
            {
                "id": "alert-1",
                "name": "Alert 1",
                "icon": "server",
                "color": "#FF0000",
                "isActive": True,
                "notificationCount": 7,
                "lastTriggeredAt": CREATED_AT + 99,
                "createdAt": CREATED_AT + 1,
            }
        ],
    }


def test_alerts_of_the_same_millisecond_are_listed_newest_first(owner):
    for number in range(1, 6):
        create(number, created_at=CREATED_AT)
    assert [alert["id"] for alert in owner.alerts()] == [f"alert-{number}" for number in range(5, 0, -1)]


def test_every_alert_is_listed_however_many_there_are(owner):
    for number in range(1, 251):
        create(number)
    assert len(owner.alerts()) == 250


def test_query_parameters_change_nothing(owner):
    for number in range(1, 4):
        create(number)
    assert len(owner.get("/alerts?limit=1&cursor=x&search=x").json["alerts"]) == 3
