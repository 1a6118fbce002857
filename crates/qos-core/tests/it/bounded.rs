//! Number of cases of properties. Not in `common`, which the fuzz targets include without proptest.

use std::env;

use proptest::prelude::ProptestConfig;

/// Number of cases of a property, or `QOS_CASES_AT_MOST` if that is lower, but never too few to be useful.
/// (`PROPTEST_CASES` is for properties without a number.)
#[expect(clippy::disallowed_methods, reason = "of the tests, not of the engine")]
pub fn cases(wanted: u32) -> ProptestConfig {
    const FEWEST: u32 = 4;
    let at_most = env::var("QOS_CASES_AT_MOST").map_or(u32::MAX, |text| {
        text.parse().unwrap_or_else(|_| panic!("QOS_CASES_AT_MOST={text}: a number of cases is expected"))
    });
    ProptestConfig::with_cases(wanted.min(at_most.max(FEWEST)))
}
