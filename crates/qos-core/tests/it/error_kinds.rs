//! The kinds of errors of a configuration.

use qos_core::config::{
    BandwidthConfig, Generation, InterfaceConfig, LinkConfig, PoliceConfig, PolicyClass, PortConfig, RateSpec,
};
use qos_core::wire::Framing;
use qos_core::{ConfigError, ConfigErrorKind, Engine, PortsConfig, RouterConfig, Time};

fn refusal(classes: Vec<PolicyClass>) -> ConfigError {
    let link = LinkConfig::new(10_000_000, Framing::Ethernet);
    let ports = PortsConfig::new().port("Fa0/0", PortConfig::new(link));
    let mut engine: Engine<usize> = Engine::new(&ports, Time(0)).unwrap();
    let config = RouterConfig::new("R1", Generation::Hqf).policy_map("P", classes);
    engine.configure(Time(0), &config.interface("Fa0/0", InterfaceConfig::new(10_000).output("P"))).unwrap_err()
}

#[test]
fn each_error_kind_describes_the_problem() {
    let class = || PolicyClass::new("class-default");
    let low = refusal(vec![class().police(PoliceConfig::new(RateSpec::Bps(7_999)))]);
    assert_eq!(low.kind, ConfigErrorKind::OutOfRange);
    let text = "policy_maps.P.classes[0].police.cir: 7999 b/s is out of range: expected 8000 to 100000000000 b/s";
    assert_eq!(low.to_string(), text);
    assert_eq!(refusal(vec![PolicyClass::new("nobody")]).kind, ConfigErrorKind::Unknown);
    assert_eq!(refusal(vec![class(), class()]).kind, ConfigErrorKind::Impossible);
    let greedy = class().bandwidth(BandwidthConfig::Kbps(10_001));
    assert_eq!(refusal(vec![greedy]).kind, ConfigErrorKind::TooMuch);
    assert_eq!(RouterConfig::from_json("{").unwrap_err().kind, ConfigErrorKind::Shape);
    let slow = PortConfig::new(LinkConfig::new(0, Framing::Ethernet));
    let refused = Engine::<usize>::new(&PortsConfig::new().port("Fa0/0", slow), Time(0)).unwrap_err();
    assert_eq!(refused.kind, ConfigErrorKind::OutOfRange);
}
