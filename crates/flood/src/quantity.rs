//! Decimal numbers on the command line, converted to whole numbers of a small unit.

/// A number above zero: bits per second or nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Quantity(pub u64);

/// Converts kbit/s to bit/s.
pub fn kilobits(text: &str) -> Result<Quantity, String> {
    decimal(text, 3)
}

/// Converts milliseconds to nanoseconds.
pub fn milliseconds(text: &str) -> Result<Quantity, String> {
    decimal(text, 6)
}

/// Converts seconds to nanoseconds.
pub fn seconds(text: &str) -> Result<Quantity, String> {
    decimal(text, 9)
}

/// Returns the number times 10 to the power of `digits`, exactly.
fn decimal(text: &str, digits: usize) -> Result<Quantity, String> {
    let wrong = || format!("found {text:?}, expected a number above zero such as 600 or 2.5");
    let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
    if [whole, fraction].iter().any(|part| part.is_empty() || !part.bytes().all(|byte| byte.is_ascii_digit())) {
        return Err(wrong());
    }
    let fraction = fraction.trim_end_matches('0');
    if fraction.len() > digits {
        return Err(format!("found {text:?}, expected at most {digits} digits after the point"));
    }
    match format!("{whole}{fraction:0<digits$}").parse::<u64>() {
        // Larger values would overflow as times.
        Ok(0) => Err(wrong()),
        Ok(number) if number <= u64::MAX / 4 => Ok(Quantity(number)),
        _ => Err(format!("found {text:?}, a value that is too large")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn numbers_are_read_exactly() {
        assert_eq!(kilobits("600"), Ok(Quantity(600_000)));
        assert_eq!(kilobits("0.001"), Ok(Quantity(1)));
        assert_eq!(milliseconds("2.5"), Ok(Quantity(2_500_000)));
        assert_eq!(seconds("30.0000000000"), Ok(Quantity(30_000_000_000)));
        for wrong in ["", ".", "1.", ".5", "-1", "+1", "1e3", "0", "0.0", " 1", "1 s", "١", "99999999999999999999"] {
            assert!(seconds(wrong).is_err(), "{wrong}");
        }
    }

    proptest! {
        #[test]
        fn printed_number_is_parsed_back(bits in 1u64..1_000_000_000_000) {
            let text = format!("{}.{:03}", bits / 1000, bits % 1000);
            prop_assert_eq!(kilobits(&text), Ok(Quantity(bits)));
        }

        #[test]
        fn any_text_is_read_or_refused(text in ".{0,30}") {
            let _ = seconds(&text);
        }
    }
}
