//! The switches of mistakes on purpose (crate `mistakes`): `false`, and nothing of them, in builds without the feature.

/// Whether this mistake is made.
#[cfg(feature = "mistakes")]
macro_rules! mistaken {
    ($mistake:ident) => {
        ::mistakes::made(::mistakes::Mistake::$mistake)
    };
}

/// Whether this mistake is made: none is.
#[cfg(not(feature = "mistakes"))]
macro_rules! mistaken {
    ($mistake:ident) => {
        false
    };
}
