"""Configuration of Monitors: JSON, rows, defaults, and what is ignored."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from casework.process.monitor_settings import (
    SLEEP_FLOORS,
    MonitorConfig,
    MonitorValues,
    Source,
    effective,
    read_monitors,
    read_row,
)


def minutes(number: float) -> timedelta:
    return timedelta(minutes=number)


def configured(**fields: Any) -> dict[str, Any]:
    return {"monitors": [{"monitorClass": "MailMonitor", **fields}]}


def test_a_monitor_is_configured_in_json() -> None:
    """One object of `monitors` for a class; all its fields are used, and the source of each is told."""
    json = read_monitors(
        configured(pollingInterval="PT3M", sleepTime="PT1M", maxLoops=500, maxRunningTime="PT8H") | {"other": 1}
    )
    made = effective("MailMonitor", json=json)
    assert made.config == MonitorConfig(minutes(3), minutes(1), 500, timedelta(hours=8))
    assert set(made.sources.values()) == {Source.JSON}
    assert made.ignored == ()


@pytest.mark.parametrize(
    ("written", "is_"),
    [
        ("P1D", timedelta(days=1)),
        ("PT1H30M10S", timedelta(hours=1, minutes=30, seconds=10)),
        ("PT15S", timedelta(seconds=15)),
        ("P1W", timedelta(days=7)),
    ],
)
def test_durations_are_iso(written: str, is_: timedelta) -> None:
    """BP-14. Durations are ISO 8601."""
    assert (
        effective("MailMonitor", json=read_monitors(configured(maxRunningTime=written))).config.max_running_time == is_
    )


def test_defaults_hold_where_nothing_is_said() -> None:
    """BP-14. 60 s between polls, a quarter of it asleep, no limits; the quarter is of the interval in force."""
    made = effective("MailMonitor")
    assert made.config == MonitorConfig(timedelta(seconds=60), timedelta(seconds=15), None, None)
    assert set(made.sources.values()) == {Source.DEFAULT}
    longer = effective("MailMonitor", json=read_monitors(configured(pollingInterval="PT2H"))).config
    assert longer.sleep_time == minutes(30)


def test_a_sleep_has_a_floor() -> None:
    """BP-14. The sleep has a floor, 1 s by default and 60 s in the profile `control-tower`, told as its source."""
    json = read_monitors(configured(pollingInterval="PT4M", sleepTime="PT0.2S"))
    made = effective("MailMonitor", json=json)
    assert (made.config.sleep_time, made.sources["sleep_time"]) == (timedelta(seconds=1), Source.FLOOR)
    control_tower = effective(
        "MailMonitor", json=read_monitors(configured(sleepTime="PT20S")), floor=SLEEP_FLOORS["control-tower"]
    )
    assert (control_tower.config.sleep_time, control_tower.sources["sleep_time"]) == (minutes(1), Source.FLOOR)


BAD = [
    ({"poolingInterval": "PT3M"}, "poolingInterval"),
    ({"comment": "x"}, "comment"),
    ({"pollingInterval": "3 minutes"}, "pollingInterval"),
    ({"pollingInterval": "P1M"}, "pollingInterval"),
    ({"pollingInterval": "P1Y"}, "pollingInterval"),
    ({"pollingInterval": "PT0S"}, "pollingInterval"),
    ({"sleepTime": 60}, "sleepTime"),
    ({"sleepTime": "-PT1S"}, "sleepTime"),
    ({"maxLoops": 0}, "maxLoops"),
    ({"maxLoops": True}, "maxLoops"),
    ({"maxLoops": "5"}, "maxLoops"),
    ({"maxRunningTime": "P"}, "maxRunningTime"),
]


@pytest.mark.parametrize(("fields", "at_fault"), BAD)
def test_an_object_with_a_mistake_is_ignored_as_a_whole(fields: dict[str, Any], at_fault: str) -> None:
    """An unexpected field or a bad value: the whole object is ignored, defaults apply, the field is named."""
    good = {"pollingInterval": "PT3M", "sleepTime": "PT1M", "maxLoops": 7}
    json = read_monitors(configured(**{**good, **fields}))
    made = effective("MailMonitor", json=json)
    assert made.config == effective("MailMonitor").config
    assert [each.field for each in made.ignored] == [at_fault]
    assert f"monitors[0] (MailMonitor), field '{at_fault}'" in str(made.ignored[0])
    assert str(made.ignored[0]).endswith("The whole of it is ignored.")


def test_a_near_name_is_suggested() -> None:
    """What is ignored for a typo says what was meant."""
    (ignored,) = read_monitors(configured(poolingInterval="PT3M")).ignored
    assert "Did you mean 'pollingInterval'?" in str(ignored)


@pytest.mark.parametrize(
    ("configuration", "place"),
    [
        ([], "configuration"),
        ({"monitors": {}}, "monitors"),
        ({"monitors": ["MailMonitor"]}, "monitors[0]"),
        ({"monitors": [{"pollingInterval": "PT3M"}]}, "monitors[0]"),
        ({"monitors": [{"monitorClass": " "}]}, "monitors[0]"),
    ],
)
def test_what_is_no_configuration_is_told(configuration: Any, place: str) -> None:
    """A configuration of another shape changes nothing, and is told."""
    made = read_monitors(configuration)
    assert (made.by_class, [each.place for each in made.ignored]) == ({}, [place])


def test_one_mistake_leaves_the_other_monitors_alone() -> None:
    """Each object stands for itself; of two for one class the first counts, and the second is told."""
    first = {"monitorClass": "A", "maxLoops": 1}
    json = read_monitors({"monitors": [first, {"monitorClass": "A", "maxLoops": 2}, {"monitorClass": "B", "x": 1}]})
    assert json.by_class == {"A": MonitorValues(max_loops=1)}
    assert [each.monitor_class for each in json.ignored] == ["A", "B"]
    assert effective("A", json=json).config.max_loops == 1
    assert [each.place for each in effective("B", json=json).ignored] == ["monitors[2]"]


def test_the_row_goes_before_the_json() -> None:
    """Row, then JSON, then defaults, value by value; the source of each is told."""
    json = read_monitors(configured(pollingInterval="PT3M", maxLoops=500))
    made = effective("MailMonitor", row={"polling_interval": "PT5M", "max_loops": None, "uuid": "x"}, json=json)
    assert (made.config.polling_interval, made.config.max_loops) == (minutes(5), 500)
    assert made.sources == {
        "polling_interval": Source.ROW,
        "sleep_time": Source.DEFAULT,
        "max_loops": Source.JSON,
        "max_running_time": Source.DEFAULT,
    }
    assert made.config.sleep_time == minutes(1.25)


def test_a_row_with_a_mistake_is_ignored_as_a_whole() -> None:
    """A bad duration in the row: none of it is used, the JSON is, and the column is named."""
    json = read_monitors(configured(pollingInterval="PT3M"))
    made = effective("MailMonitor", row={"polling_interval": "PT5M", "sleep_time": "1 minute"}, json=json)
    assert (made.config.polling_interval, made.sources["polling_interval"]) == (minutes(3), Source.JSON)
    assert [(each.place, each.field) for each in made.ignored] == [("row", "sleep_time")]
    assert read_row("MailMonitor", {}) == MonitorValues()


PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=8,
)
FIELD = st.sampled_from(["monitorClass", "pollingInterval", "sleepTime", "maxLoops", "maxRunningTime", "other"])


@given(st.lists(st.dictionaries(FIELD, PLAIN | st.just("PT1M"), max_size=5), max_size=4) | PLAIN)
def test_no_configuration_breaks_the_reading(monitors: Any) -> None:
    """Whatever stands there: each object is either used or told, and the values in force can be run."""
    json = read_monitors({"monitors": monitors})
    if isinstance(monitors, list):
        assert len(json.by_class) + len(json.ignored) == len(monitors)
    for name in (*json.by_class, "Other"):
        config = effective(name, json=json).config
        assert config.polling_interval > timedelta(0)
        assert config.sleep_time >= timedelta(seconds=1)
