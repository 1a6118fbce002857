//! Switches of deliberate mistakes (crate `mistakes`): always `false` in builds without the feature.

/// Returns whether this mistake is active.
#[cfg(feature = "mistakes")]
macro_rules! mistaken {
    ($mistake:ident) => {
        ::mistakes::made(::mistakes::Mistake::$mistake)
    };
}

/// Returns false: no mistake is active.
#[cfg(not(feature = "mistakes"))]
macro_rules! mistaken {
    ($mistake:ident) => {
        false
    };
}
