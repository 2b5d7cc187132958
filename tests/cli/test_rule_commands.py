"""The commands for rules on metrics."""

import re

from tests.support.heartbeats import EMAIL
from tests.support.rows import each
from tests.support.rules import Ruled


def create(service, *words, project="web", metric="cpu"):
    return service.flask("rule", "create", EMAIL, project, metric, *words)


def rule_list(service, *email):
    return service.flask("rule", "list", *email).output


@each(
    "words, written",
    [
        (["> 90"], "> 90"),
        (["> 90", "--for", "5m"], "> 90 for 5m"),
        (["< 10"], "< 10"),
        (["= 0"], "= 0"),
        (["!= 0"], "!= 0"),
        ([">=+1.50"], ">= 1.5"),
        (["  <=   -1e3 ", "--for", "1h 30m"], "<= -1000 for 1h 30m"),
        (["= -0.0"], "= 0"),
        (["> 0.1"], "> 0.1"),
        (["silent 24h"], "silent 1d"),
        (["silent  1h 30m"], "silent 1h 30m"),
    ],
)
def test_create_prints_the_id_alone_and_list_the_rule(service, owner, words, written):
    printed = create(service, *words).output
    assert re.fullmatch(r"[0-9a-f]{32}\n", printed)
    newest = rule_list(service, EMAIL).splitlines()[0]
    assert newest.split("\t")[:5] == [printed.strip(), "web", "cpu", written, "ok"]


def test_list_prints_a_line_each_newest_first(service, owner):
    first = Ruled(service, owner, "> 90", "--for", "5m")
    second = Ruled(service, owner, "silent 1h", project="a\tb", metric="  ram ")
    third = Ruled(service, owner, "> 50")
    third.sends(60)
    created = "2026-11-21T10:00:00Z"
    assert rule_list(service, EMAIL) == (
        f"{third.id}\tweb\tcpu\t> 50\tfiring\t{created}\t{created}\t{EMAIL}\n"
        f"{second.id}\ta b\tram\tsilent 1h\tok\t-\t{created}\t{EMAIL}\n"
        f"{first.id}\tweb\tcpu\t> 90 for 5m\tok\t-\t{created}\t{EMAIL}\n"
    )


def test_without_an_address_list_prints_the_rules_of_all_accounts(service, owner):
    service.account("other@example.org")
    mine = create(service, "> 90").output.strip()
    others = service.flask("rule", "create", "other@example.org", "web", "cpu", "> 90").output.strip()
    assert [line.split("\t")[0] for line in rule_list(service).splitlines()] == [others, mine]
    assert [line.split("\t")[0] for line in rule_list(service, EMAIL).splitlines()] == [mine]


def test_delete_says_so_in_a_line(service, owner):
    rule = Ruled(service, owner, "> 90", metric="c\tpu")
    assert service.flask("rule", "delete", EMAIL, rule.id).output == "Deleted the rule > 90 on c pu.\n"
    assert rule_list(service) == ""
    assert service.flask("rule", "delete", EMAIL, rule.id).exit_code == 1
