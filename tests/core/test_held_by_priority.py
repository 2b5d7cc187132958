"""What holds an event of which priority, and when it is released."""

from core import digests
from tests.support.accounts import seq_of
from tests.support.devices import subscribe
from tests.support.holding import digest_of, shown, statuses
from tests.support.rows import each
from tests.support.times import MINUTE_S

FIELDS = ("--priority", "{{ p }}", "--tag", "{{ t }}")
PASSES, IGNORES = "--urgent-passes-quiet-hours", "--ignore-quiet-hours"


def post(hook, message, priority="", **more):
    answer = hook.post({"message": message, "p": priority, "t": "", **more})
    assert answer.status_code == 200, answer.json
    return answer.json["status"]


@each(
    "options, held",
    [((), {2, 3, 4, 5}), ((PASSES,), {2, 3, 4}), ((IGNORES,), set()), (("--follow-quiet-hours",), {2, 3, 4, 5})],
)
def test_quiet_hours_hold_each_priority_by_the_alerts_options(service, owner, night, options, held):
    hook = service.alert(*FIELDS, *options)
    assert {number for number in range(1, 6) if post(hook, "a", number) == "held"} == held


@each("options", [(), (PASSES,), (IGNORES,)])
def test_a_frequency_holds_normal_and_low_priorities_only(service, owner, options):
    hook = service.alert(*FIELDS, "--frequency", "1d", *options)
    assert [number for number in range(1, 6) if post(hook, "a", number) == "held"] == [2, 3]


def test_low_and_normal_events_are_collected_together_from_the_first_one(
    service, owner, browser, moved_clock, passes
):
    hook = service.alert(*FIELDS, "--frequency", "1h")
    post(hook, "a", "low")
    moved_clock.advance(40 * MINUTE_S)
    post(hook, "b")
    passes(20 * MINUTE_S - 1)
    assert browser.pushes == []
    passes(1)
    assert shown(browser) == [digest_of("Backups: a", "Backups: b")]


def test_allowing_urgent_events_releases_the_urgent_ones_already_held(service, owner, browser, night, works):
    hook = service.alert(*FIELDS)
    assert [post(hook, message, level) for message, level in [("a", 4), ("b", 5)]] == ["held"] * 2
    works()
    hook.set(PASSES)
    works()
    assert shown(browser) == [("MCP - Backups", "b")] and statuses(owner) == {"a": "held", "b": "delivered"}


def pushed(browser):
    return [one["notification"] for one in browser.messages]


@each("levels, priority", [((2, 2), 2), ((2, 3), None), (("", ""), None), ((2, 4), 4), ((3, 5, 2), 5)])
def test_a_digest_has_the_highest_priority_of_its_lines(service, owner, browser, night, levels, priority):
    hook = service.alert(*FIELDS)
    for level in levels:
        post(hook, "a", level)
    digests.release_now(seq_of())
    service.work()
    (message,) = pushed(browser)
    browser.messages.clear()
    assert message["title"] == f"MCP - {len(levels)} notifications"
    assert message.get("silent", False) is (priority == 2)
    assert message.get("requireInteraction", False) is (priority == 5)


def test_a_release_goes_to_the_devices_that_accept_its_priority(service, owner, browser, push_service, night):
    proud = subscribe(owner, push_service, minPriority=4)
    hook = service.alert(*FIELDS)
    for number, (levels, accepted) in enumerate([((4, 3), 1), ((3, 2), 1), ((4,), 2)], 1):
        for level in levels:
            post(hook, f"{level}", level)
        digests.release_now(seq_of())
        service.work()
        assert (len(browser.messages), len(proud.messages)) == (number, accepted)
        assert set(statuses(owner).values()) == {"delivered"}
