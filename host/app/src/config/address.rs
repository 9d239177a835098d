//! Addresses to listen on, as people write them.

use std::net::{IpAddr, Ipv4Addr, SocketAddr, ToSocketAddrs as _};

use serde::{Deserialize as _, Deserializer, de};

/// Parses `127.0.0.1:8765`, `[::1]:8765`, `localhost:8765`, `:8765` or `8765`. Without a host it means only this
/// machine, because serving other machines should be an explicit choice.
///
/// # Errors
/// If the text has another form, or the name cannot be resolved.
pub fn address(text: &str) -> Result<SocketAddr, String> {
    if let Ok(address) = text.parse() {
        return Ok(address);
    }
    if let Ok(port) = text.strip_prefix(':').unwrap_or(text).parse() {
        return Ok(SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port));
    }
    let Some((name, port)) = text.rsplit_once(':') else {
        return Err(format!("{text:?} has no port; write {text}:8765"));
    };
    let port: u16 = port
        .parse()
        .map_err(|_| format!("{port:?} is not a port; a port is a number from 0 to 65535"))?;
    let found = (name, port)
        .to_socket_addrs()
        .map_err(|err| format!("the name {name:?} cannot be resolved: {err}"))?;
    // IPv4 first, because every client tries it.
    let mut found: Vec<SocketAddr> = found.collect();
    found.sort_by_key(SocketAddr::is_ipv6);
    let first = found.first().copied();
    first.ok_or_else(|| format!("the name {name:?} has no address"))
}

/// Deserializes an address in a configuration.
pub(super) fn deserialize<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<SocketAddr>, D::Error> {
    let text = String::deserialize(deserializer)?;
    address(&text).map(Some).map_err(de::Error::custom)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_read_as_people_write_it() {
        for (text, meant) in [
            ("127.0.0.1:8791", "127.0.0.1:8791"),
            ("[::1]:8791", "[::1]:8791"),
            ("localhost:8791", "127.0.0.1:8791"),
            (":8791", "127.0.0.1:8791"),
            ("8791", "127.0.0.1:8791"),
            ("0", "127.0.0.1:0"),
            ("0.0.0.0:8791", "0.0.0.0:8791"),
        ] {
            assert_eq!(
                address(text).map(|address| address.to_string()),
                Ok(meant.to_owned())
            );
        }
    }

    #[test]
    fn what_is_no_address_is_told_why() {
        for (text, why) in [
            ("localhost", "localhost:8765"),
            ("127.0.0.1", "127.0.0.1:8765"),
            (":99999", "65535"),
            ("localhost:http", "is not a port"),
            ("no.such.name.invalid:80", "cannot be resolved"),
            ("", "no port"),
        ] {
            let said = address(text).unwrap_err();
            assert!(said.contains(why), "{text}: {said}");
        }
    }
}
