//! Configuration of the daemon: that of the engine, and the additional keys of IP SLA.

use std::fmt;

use qos_core::{ConfigError, RouterConfig};
use schemars::JsonSchema;
use serde::de::value::{MapAccessDeserializer, StrDeserializer};
use serde::de::{DeserializeSeed, Deserializer, Error, IntoDeserializer, MapAccess, Visitor};
use serde::Deserialize;

/// The complete configuration of a router's data plane.
#[derive(Clone, Debug, PartialEq, Eq, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct DataPlaneConfig {
    /// Configuration of the engine.
    #[schemars(flatten)]
    pub engine: RouterConfig,
    /// Nanoseconds at process level for a packet from or to the router itself; null: none, and the kernel's answers
    /// have their real times.
    #[schemars(default)]
    pub process_ns: Option<u64>,
    /// The router's own probes and its responder.
    #[schemars(default)]
    pub ip_sla: Option<ip_sla::Config>,
}

impl DataPlaneConfig {
    /// Reads a configuration from JSON text.
    ///
    /// # Errors
    /// The path and reason when the text is not JSON or not of this shape.
    pub fn from_json(text: &str) -> Result<DataPlaneConfig, ConfigError> {
        qos_core::config::from_json(text)
    }
}

/// Implemented by hand, because `serde(flatten)` would accept unknown keys and lose the position of an error.
impl<'de> Deserialize<'de> for DataPlaneConfig {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(ConfigVisitor)
    }
}

/// Continuation of the engine's list of existing keys.
const OWN_KEYS: &str = ", `process_ns`, `ip_sla`";

struct ConfigVisitor;

impl<'de> Visitor<'de> for ConfigVisitor {
    type Value = DataPlaneConfig;

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("the configuration of a router")
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<DataPlaneConfig, A::Error> {
        let (mut process_ns, mut ip_sla) = (None, None);
        let own = Own { map, process_ns: &mut process_ns, ip_sla: &mut ip_sla };
        let engine = RouterConfig::deserialize(MapAccessDeserializer::new(own))?;
        Ok(DataPlaneConfig { engine, process_ns: process_ns.flatten(), ip_sla: ip_sla.flatten() })
    }
}

/// Passes the engine its keys and stores those of the daemon.
struct Own<'a, A> {
    map: A,
    process_ns: &'a mut Option<Option<u64>>,
    ip_sla: &'a mut Option<Option<ip_sla::Config>>,
}

impl<'de, A: MapAccess<'de>> Own<'_, A> {
    fn keep<T: Deserialize<'de>>(map: &mut A, key: &'static str, kept: &mut Option<T>) -> Result<(), A::Error> {
        match kept.replace(map.next_value()?) {
            None => Ok(()),
            Some(_) => Err(A::Error::duplicate_field(key)),
        }
    }
}

impl<'de, A: MapAccess<'de>> MapAccess<'de> for Own<'_, A> {
    type Error = A::Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, mut seed: K) -> Result<Option<K::Value>, A::Error> {
        while let Some(key) = self.map.next_key_seed(KeySeed(seed))? {
            match key {
                Key::Engine(key) => return Ok(Some(key)),
                Key::ProcessNs(back) => {
                    Self::keep(&mut self.map, "process_ns", self.process_ns)?;
                    seed = back;
                }
                Key::IpSla(back) => {
                    Self::keep(&mut self.map, "ip_sla", self.ip_sla)?;
                    seed = back;
                }
            }
        }
        Ok(None)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, A::Error> {
        self.map.next_value_seed(seed)
    }
}

/// A key: the engine's result for it, or one of the daemon's own keys, with the engine's seed for the next.
enum Key<K, V> {
    Engine(V),
    ProcessNs(K),
    IpSla(K),
}

struct KeySeed<K>(K);

impl<'de, K: DeserializeSeed<'de>> DeserializeSeed<'de> for KeySeed<K> {
    type Value = Key<K, K::Value>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl<'de, K: DeserializeSeed<'de>> Visitor<'de> for KeySeed<K> {
    type Value = Key<K, K::Value>;

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("a key of the configuration")
    }

    fn visit_str<E: Error>(self, key: &str) -> Result<Self::Value, E> {
        match key {
            "process_ns" => Ok(Key::ProcessNs(self.0)),
            "ip_sla" => Ok(Key::IpSla(self.0)),
            other => {
                let key: StrDeserializer<E> = other.into_deserializer();
                let all_keys = |error| E::custom(format_args!("{error}{OWN_KEYS}"));
                self.0.deserialize(key).map(Key::Engine).map_err(all_keys)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ENGINE: &str = r#""format": 1, "router": "R", "generation": "hqf""#;

    fn refused(more: &str) -> String {
        DataPlaneConfig::from_json(&format!("{{{ENGINE}, {more}}}")).unwrap_err().to_string()
    }

    #[test]
    fn engine_and_own_settings_are_read_from_one_object() {
        let text = format!(r#"{{"process_ns": 7, {ENGINE}, "interfaces": {{}}, "ip_sla": {{"responder": true}}}}"#);
        let config = DataPlaneConfig::from_json(&text).unwrap();
        assert_eq!(config.engine, RouterConfig::from_json(&format!("{{{ENGINE}}}")).unwrap());
        assert_eq!((config.process_ns, config.ip_sla.map(|sla| sla.responder)), (Some(7), Some(true)));
        let nulls = format!(r#"{{{ENGINE}, "process_ns": null, "ip_sla": null}}"#);
        assert_eq!(DataPlaneConfig::from_json(&nulls), DataPlaneConfig::from_json(&format!("{{{ENGINE}}}")));
    }

    #[test]
    fn errors_are_reported_with_their_place() {
        let unknown = refused(r#""process": 7"#);
        assert!(unknown.starts_with("process: unknown field `process`, expected one of `format`"), "{unknown}");
        assert!(unknown.contains(OWN_KEYS), "{unknown}");
        let by_engine = RouterConfig::from_json(&format!(r#"{{{ENGINE}, "process": 7}}"#)).unwrap_err().to_string();
        assert_eq!(unknown.replace(OWN_KEYS, ""), by_engine);
        let wrong = refused(r#""interfaces": {"P": {"enabled": 1}}"#);
        assert!(wrong.starts_with("interfaces.P.enabled: invalid type"), "{wrong}");
        let wrong = refused(r#""ip_sla": {"operations": {"1": {"type": "ping"}}}"#);
        assert!(wrong.starts_with("ip_sla.operations.1.type: unknown variant `ping`"), "{wrong}");
        let twice = refused(r#""process_ns": 1, "process_ns": null"#);
        assert!(twice.contains("duplicate field `process_ns`"), "{twice}");
    }
}
