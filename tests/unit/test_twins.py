"""Near twins: alike in words, and not different in any fact."""

from __future__ import annotations

from lab.corpus.twins import bands, near_classes
from lab.text import class_id

LONG = (
    "is tested every {interval} by the crew of the day, who close the outlet, open the bypass, start the motor from the desk, watch the gauge on the delivery side until it has "
    "stood still, listen at both bearings with a rod, feel the casing for heat, look for drips at the gland and the flange, stop the motor, put the valves back, write the reading "
    "in the log with the hour and their role, hang the green card on the handle, tell the panel that the test is over, and report anything unusual to the shift lead before the end "
    "of the watch, so that the next crew knows in what condition the machine was left and which parts have to be looked at when the plant is next at rest for a longer time"
)


def classes(*texts: str, terms: tuple[str, ...] = ()) -> list[str]:
    found = near_classes([(str(i), class_id(t), t) for i, t in enumerate(texts)], terms)
    return [found[str(i)] for i in range(len(texts))]


def test_two_rules_that_differ_in_a_number_and_a_code_are_never_twins() -> None:
    a = "Pump A " + LONG.format(interval="6 months")
    b = "Pump B " + LONG.format(interval="12 months")
    assert classes(a, b) == ["0", "1"]


def test_a_reworded_ending_is_a_near_twin() -> None:
    a = "Pump A " + LONG.format(interval="6 months")
    assert classes(a, a + " indeed") == ["0", "0"]


def test_a_negation_parts_them() -> None:
    a = "Pump A " + LONG.format(interval="6 months")
    assert classes(a, a.replace("is tested", "is not tested")) == ["0", "1"]


def test_a_defined_term_parts_them() -> None:
    a = "Pump A " + LONG.format(interval="6 months")
    b = a.replace("green card", "green tag")
    assert classes(a, b) == ["0", "0"]
    assert classes(a, b, terms=("green card",)) == ["0", "1"]


def test_exact_twins_are_one_class_however_short() -> None:
    assert classes("Close it.", "close  it.", "Open it.") == ["0", "0", "2"]


def test_nothing_gives_nothing() -> None:
    assert near_classes([]) == {}


def test_bands_propose_what_is_alike_and_the_same_text_has_the_same_ones() -> None:
    a = "Pump A " + LONG.format(interval="6 months")
    assert bands(a) == bands(a) and len(bands(a)) == 25 and bands("…") == []
    assert set(bands(a)) & set(bands(a + " indeed")) and not set(bands(a)) & set(
        bands("Something else entirely is said here, with no word in common.")
    )
