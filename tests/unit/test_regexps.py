"""Regular expressions of IOS, checked by hand: matches, non-matches, and invalid forms."""

from __future__ import annotations

import pytest

from qoslab.ios.regexps import LENGTH_LIMIT, NESTING_LIMIT, Regexp, RegexpError

TABLE = [
    ("ab?c", ["ac", "abc"], ["abbc"]),
    ("ab*c", ["ac", "abc", "abbbc"], ["adc"]),
    ("ab+c", ["abc", "abbbc"], ["ac"]),
    ("^a?$", ["", "a"], ["aa", "b"]),
    ("^(ab)+$", ["ab", "abab"], ["", "aba", "abb"]),
    ("^(ab)*c$", ["c", "abc", "ababc"], ["ac", "abac"]),
    ("a**b", ["b", "aab"], ["a"]),
    ("x*", ["", "y"], []),
    ("^$", [""], ["a"]),
    ("^a", ["ab", "a"], ["ba"]),
    ("a$", ["ba", "a"], ["ab"]),
    ("a^b", [], ["ab", "a^b"]),
    ("a$b", [], ["ab", "a$b"]),
    ("^a|b$", ["ac", "cb"], ["ca", "bc"]),
    ("x(a|bc|d)y", ["xay", "xbcy", "xdy"], ["xy", "xby", "xady"]),
    ("x(a|)y", ["xay", "xy"], ["xby"]),
    ("^a.c$", ["abc", "a.c", "aac"], ["ac", "abbc"]),
    (r"^\*\.$", ["*."], ["*a", "**"]),
    ("x[a-c]y", ["xay", "xby", "xcy"], ["xdy", "x`y", "x-y"]),
    ("x[^a-c]y", ["xdy", "x`y", "x-y", "x^y"], ["xay", "xby", "xcy"]),
    ("x[^ab]y", ["xcy", "x^y", "x[y"], ["xay", "xby"]),
    ("x[adb]y", ["xay", "xdy", "xby"], ["xcy", "xey"]),
    ("x[]]y", ["x]y"], ["xy", "x[y"]),
    ("x[^]]y", ["xay"], ["x]y"]),
    ("^x[a]y]", ["xay]"], ["x]", "xyy]", "xa"]),
    ("]x[ab]y", ["]xay"], ["]xcy"]),
    ("x[a-]y", ["xay", "x-y"], ["xby"]),
    ("x[-a]y", ["x-y", "xay"], ["xby"]),
    ("x[a-a]y", ["xay"], ["xby", "x-y"]),
    ("x[a-cz]y", ["xby", "xzy"], ["xyy", "xdy"]),
    ("x[za-c]y", ["xzy", "xby"], ["x-y", "xdy"]),
    ("[a]", ["a", "ba"], ["", "b"]),
    ("a_b", ["a b", "a,b", "a{b", "a}b", "a(b", "a)b", "a_b"], ["ab", "a-b"]),
    ("_a_", ["a", " a", "a,", "b a c"], ["ba", "ab"]),
]


@pytest.mark.parametrize(("expression", "matching", "others"), TABLE, ids=[row[0] for row in TABLE])
def test_expression_matches_its_lines(expression: str, matching: list[str], others: list[str]) -> None:
    found = Regexp(expression)
    lines = [*matching, *others]
    assert [line for line in lines if found.search(line)] == matching


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("x[ab", "found [ without ]"),
        ("[]", "found [ without ]"),
        ("x[c-ab]", "found the range c-a, expected the lower character first"),
        ("a)", "found ) without ("),
        ("(a", "found ( without )"),
        ("*a", "found nothing before *"),
        ("a|+", "found nothing before +"),
        ("(?)", "found nothing before ?"),
        ("a\\", "found nothing after the last \\"),
        ("(" * 51 + ")" * 51, "found more than 50 nested brackets"),
        ("a" * 255, "found 255 characters, expected at most 254"),
    ],
)
def test_invalid_expression_is_refused(expression: str, message: str) -> None:
    with pytest.raises(RegexpError) as raised:
        Regexp(expression)
    assert str(raised.value) == message


def test_expression_at_the_limits_is_accepted() -> None:
    assert (NESTING_LIMIT, LENGTH_LIMIT) == (50, 254)
    assert Regexp("a" * LENGTH_LIMIT).search("a" * LENGTH_LIMIT)
    assert Regexp("(" * NESTING_LIMIT + "a" + ")" * NESTING_LIMIT).search("a")
    assert Regexp("(a)" * (NESTING_LIMIT + 1)).search("a" * (NESTING_LIMIT + 1)), "next to one another"
