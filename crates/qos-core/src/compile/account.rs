//! `account`: the lengths of packets for shapers and parts of a line.
//!
//! Errors carry a path relative to the class; the caller puts the class's own in front.

use crate::compile::generation::Properties;
use crate::config::policy::PolicyClass;
use crate::config::policy::{
    AccessEncapsulation, AccountConfig, SubscriberEncapsulation, SubscriberLineAccount, UserDefinedAccount,
};
use crate::error::ConfigError;
use crate::plan::shape::AccountPlan;

/// Returns the overhead accounting of a class, if configured.
pub(crate) fn of(class: &PolicyClass, properties: &Properties) -> Result<Option<AccountPlan>, ConfigError> {
    class.account.as_ref().map(|account| plan(account, properties.greatest_account_offset)).transpose()
}

/// Returns the bytes that IOS counts for each encapsulation in `account`: table 10-1 of the Cisco 10000's QoS guide. It
/// uses the LLC/SNAP header of bridged packets for routed ones, and counts no protocol field of PPP after LLC.
pub(crate) fn plan(config: &AccountConfig, most: i32) -> Result<AccountPlan, ConfigError> {
    const AAL5_MUX: i32 = 8;
    const AAL5_SNAP: i32 = 18;
    const ETHERNET: i32 = 14;
    const TAGGED: i32 = 18;
    match *config {
        AccountConfig::UserDefined(UserDefinedAccount { offset, atm }) => {
            if !(-most..=most).contains(&offset) {
                let message = format!("{offset} bytes are out of range: expected -{most} to {most}");
                return Err(ConfigError::out_of_range("account.user_defined.offset", message));
            }
            Ok(AccountPlan { offset, cells: atm, least: 0, ptm: false })
        }
        AccountConfig::Aal5(SubscriberLineAccount { access, subscriber }) => {
            let counted = match access {
                AccessEncapsulation::Dot1q => TAGGED,
                AccessEncapsulation::Qinq => 22,
            };
            let taken = match subscriber {
                SubscriberEncapsulation::SnapRouted => AAL5_SNAP,
                SubscriberEncapsulation::MuxRouted => AAL5_MUX,
                SubscriberEncapsulation::SnapPppoa => 12,
                SubscriberEncapsulation::MuxPppoa => 10,
                SubscriberEncapsulation::SnapRbe => AAL5_SNAP + ETHERNET,
                SubscriberEncapsulation::MuxRbe => AAL5_MUX + ETHERNET,
                SubscriberEncapsulation::SnapDot1qRbe => AAL5_SNAP + TAGGED,
                SubscriberEncapsulation::MuxDot1qRbe => AAL5_MUX + TAGGED,
            };
            Ok(AccountPlan { offset: taken - counted, cells: true, least: 0, ptm: false })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Table 10-1 of the Cisco 10000's QoS guide: bytes counted for the subscriber's encapsulation, minus those that
    /// the router counts for its own.
    #[test]
    fn account_encapsulations_have_their_byte_counts() {
        for (subscriber, bytes) in [
            (SubscriberEncapsulation::SnapRouted, 18),
            (SubscriberEncapsulation::MuxRouted, 8),
            (SubscriberEncapsulation::SnapDot1qRbe, 36),
            (SubscriberEncapsulation::MuxDot1qRbe, 26),
            (SubscriberEncapsulation::SnapPppoa, 12),
            (SubscriberEncapsulation::MuxPppoa, 10),
            (SubscriberEncapsulation::SnapRbe, 32),
            (SubscriberEncapsulation::MuxRbe, 22),
        ] {
            for (access, counted) in [(AccessEncapsulation::Dot1q, 18), (AccessEncapsulation::Qinq, 22)] {
                let asked = AccountConfig::Aal5(SubscriberLineAccount { access, subscriber });
                assert_eq!(
                    plan(&asked, 63).unwrap(),
                    AccountPlan { offset: bytes - counted, cells: true, least: 0, ptm: false }
                );
            }
        }
    }

    #[test]
    fn offsets_are_checked() {
        for (offset, fits) in [(-64, false), (-63, true), (63, true), (64, false)] {
            let asked = AccountConfig::UserDefined(UserDefinedAccount { offset, atm: false });
            assert_eq!(
                plan(&asked, 63).ok(),
                fits.then_some(AccountPlan { offset, cells: false, least: 0, ptm: false })
            );
        }
    }
}
