//! The switches of mistakes on purpose (crate `mistakes`): `false`, and nothing of them, in builds without the feature.

/// Returns whether this mistake is active.
#[cfg(feature = "mistakes")]
macro_rules! mistaken {
    ($mistake:ident) => {
        ::mistakes::made(::mistakes::Mistake::$mistake)
    };
}

/// Returns whether this mistake is active: none is.
#[cfg(not(feature = "mistakes"))]
macro_rules! mistaken {
    ($mistake:ident) => {
        false
    };
}
