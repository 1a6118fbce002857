import pytest

from qoslab.errors import UserError
from qoslab.virtual_lab.linux_names import linux_interface


@pytest.mark.parametrize(
    ("ios", "linux"),
    [
        ("FastEthernet0/1", "Fa0-1"),
        ("GigabitEthernet1/0/15", "Gi1-0-15"),
        ("Serial0/1/0", "Se0-1-0"),
        ("Ethernet0", "Et0"),
        ("GigabitEthernet0/1.100", "Gi0-1.100"),
    ],
)
def test_short_interface_names_have_two_letters_and_numbers(ios: str, linux: str) -> None:
    assert linux_interface(ios) == linux


def test_kernel_names_can_have_a_suffix() -> None:
    assert linux_interface("FastEthernet0/1", ".in") == "Fa0-1.in"


@pytest.mark.parametrize("name", ["", "eth0", "Fa0-1", "0/1", "FastEthernet", "FastEthernet 0/1"])
def test_invalid_interface_names_are_refused(name: str) -> None:
    with pytest.raises(UserError, match="not an IOS interface name"):
        linux_interface(name)


def test_name_too_long_for_the_kernel_is_refused() -> None:
    with pytest.raises(UserError, match="longer than 15 characters"):
        linux_interface("GigabitEthernet100/200/300.4000")
