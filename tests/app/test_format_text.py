"""Numbers as people read them; expected texts written by hand."""

from __future__ import annotations

import math

import pytest

from app import format_text as text

T = text.THIN


@pytest.mark.parametrize(
    ("number", "shown"),
    [
        (0, "0"),
        (9_999, f"9{T}999"),
        (12_345, f"12.3{T}k"),
        (999_499, f"999{T}k"),
        (999_500, f"1.00{T}M"),
        (12_600_000, f"12.6{T}M"),
        (-12_600_000, f"−12.6{T}M"),
        (7_241_732_096, f"7.24{T}G"),
    ],
)
def test_counts(number: int, shown: str) -> None:
    assert text.count(number) == shown


@pytest.mark.parametrize(
    ("nbytes", "shown"),
    [(0, f"0{T}B"), (999, f"999{T}B"), (1000, f"1.00{T}kB"), (3_163_737, f"3.16{T}MB"), (1_999_999_999, f"2.00{T}GB")],
)
def test_sizes(nbytes: int, shown: str) -> None:
    assert text.size(nbytes) == shown


def test_limits_are_binary() -> None:
    assert [text.binary_size(n) for n in (2 << 30, 256 << 20, 1536, 100)] == [
        f"2{T}GiB", f"256{T}MiB", f"1.5{T}KiB", f"100{T}B",
    ]  # fmt: skip


def test_measured_values_keep_what_is_not_a_number() -> None:
    shown = [text.number(value) for value in (None, math.nan, math.inf, -math.inf, -0.00012345, 1234567.0)]
    assert shown == ["–", "NaN", "∞", "−∞", "−0.0001234", "1.235e+06"]


@pytest.mark.parametrize(
    ("part", "whole", "shown"),
    [
        (0, 10, f"0.0{T}%"),
        (1, 3, f"33.3{T}%"),
        (1, 100_000, f"<{T}0.1{T}%"),
        (99_999, 100_000, f"99.9{T}%"),
        (7, 7, f"100{T}%"),
        (1, 0, "–"),
    ],
)
def test_shares_never_round_to_all_or_nothing(part: int, whole: int, shown: str) -> None:
    assert text.share(part, whole) == shown


@pytest.mark.parametrize(
    ("duration", "shown"),
    [
        (0.0000042, f"4.20{T}µs"),
        (0.0042, f"4.20{T}ms"),
        (3.2, f"3.20{T}s"),
        (60, f"1{T}min"),
        (200, f"3{T}min 20{T}s"),
        (7260, f"2{T}h 1{T}min"),
    ],
)
def test_durations(duration: float, shown: str) -> None:
    assert text.seconds(duration) == shown


def test_moments_that_passed() -> None:
    passed = (5, 60, 7200, 86_400 * 3, 86_400 * 90, 86_400 * 800)
    assert [text.ago(1e9 - p, 1e9) for p in passed] == [
        "just now", "1 minute ago", "2 hours ago", "3 days ago", "3 months ago", "2 years ago",
    ]  # fmt: skip


def test_shapes_name_what_is_dynamic_and_what_is_unknown() -> None:
    assert text.shape(("batch", 3, None)) == "batch × 3 × ?"
    assert text.shape(()) == "scalar"
    assert text.shape(None) == "rank unknown"
