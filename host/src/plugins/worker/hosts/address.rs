//! Addresses of sockets, as a program passes them to the kernel, and what kind of address a number is.

use std::ffi::OsStr;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use rustix::io::Errno;

/// The most bytes that an address can have.
pub(super) const LONGEST: usize = 128;

/// Where somebody wants to connect or send to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Address {
    /// A machine and a port.
    Inet(SocketAddr),
    /// A socket on this machine, by its path.
    Unix(PathBuf),
    /// The kernel itself, by netlink.
    Kernel,
    /// Nobody: a connection is to be dissolved.
    Nobody,
    /// Anything else.
    Other,
}

impl Address {
    /// Reads an address. `EINVAL`: it is too short for its family.
    pub(super) fn parse(bytes: &[u8]) -> Result<Self, Errno> {
        let family = u16::from_ne_bytes(part(bytes, 0)?);
        Ok(match i32::from(family) {
            libc::AF_UNSPEC => Self::Nobody,
            libc::AF_INET => {
                let ip = Ipv4Addr::from(part::<4>(bytes, 4)?);
                // As long as the kernel wants it to be.
                part::<8>(bytes, 8)?;
                Self::Inet(SocketAddrV4::new(ip, u16::from_be_bytes(part(bytes, 2)?)).into())
            }
            libc::AF_INET6 => {
                let ip = Ipv6Addr::from(part::<16>(bytes, 8)?);
                let flow = u32::from_be_bytes(part(bytes, 4)?);
                let scope = part(bytes, 24).map_or(0, u32::from_ne_bytes);
                Self::Inet(SocketAddrV6::new(ip, u16::from_be_bytes(part(bytes, 2)?), flow, scope).into())
            }
            libc::AF_UNIX => match bytes[2..].split(|byte| *byte == 0).next() {
                Some(path) if !path.is_empty() => Self::Unix(OsStr::from_bytes(path).into()),
                // A name that is no file, or none.
                _ => Self::Other,
            },
            libc::AF_NETLINK if part::<8>(bytes, 4)? == [0; 8] => Self::Kernel,
            _ => Self::Other,
        })
    }
}

fn part<const N: usize>(bytes: &[u8], at: usize) -> Result<[u8; N], Errno> {
    let part = bytes.get(at..at + N).and_then(|part| part.try_into().ok());
    part.ok_or(Errno::INVAL)
}

/// Returns the address that is reached by this one: the same for each way to write it.
pub(super) fn canonical(ip: IpAddr) -> IpAddr {
    match ip.to_canonical() {
        // What is sent to "any" address comes to this machine.
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    }
}

/// Whether an address is none of the internet's: this machine, its neighbours, a private network, a cloud's own services.
pub(super) fn is_private(ip: IpAddr) -> bool {
    match canonical(ip) {
        IpAddr::V4(ip) => is_private_v4(ip),
        IpAddr::V6(ip) => {
            let parts = ip.segments();
            let v4 = |[high, low]: [u16; 2]| {
                is_private_v4(Ipv4Addr::from_bits(u32::from(high) << 16 | u32::from(low)))
            };
            match (parts[0], parts[1]) {
                (0, 0) if parts[2..6] == [0; 4] => true,
                // Translated by the network into one of the older ones.
                (0x64, 0xff9b) => v4([parts[6], parts[7]]),
                (0x2002, next) => v4([next, parts[2]]),
                // Private, of the link, of the site, to many.
                (0xfc00..=0xfdff | 0xfe80..=0xfeff | 0xff00..=0xffff, _) => true,
                _ => false,
            }
        }
    }
}

fn is_private_v4(ip: Ipv4Addr) -> bool {
    let [a, b, c, _] = ip.octets();
    ip.is_private()
        || ip.is_loopback()
        || ip.is_link_local()
        || a == 0
        // Shared by a provider's customers; also a cloud's own services.
        || (a == 100 && b & 0xc0 == 64)
        || (a, b, c) == (192, 0, 0)
        // To many, and reserved.
        || a >= 224
}

#[cfg(test)]
mod tests {
    use super::*;

    fn v4(port: u16, ip: [u8; 4]) -> Vec<u8> {
        let mut bytes = libc::AF_INET.to_ne_bytes()[..2].to_vec();
        bytes.extend(port.to_be_bytes());
        bytes.extend(ip);
        bytes.extend([0; 8]);
        bytes
    }

    #[test]
    fn addresses_are_read_as_the_kernel_reads_them() {
        let read = Address::parse(&v4(443, [192, 0, 2, 1])).unwrap();
        assert_eq!(read, Address::Inet("192.0.2.1:443".parse().unwrap()));
        assert_eq!(Address::parse(&v4(443, [192, 0, 2, 1])[..15]), Err(Errno::INVAL));
        let mut v6 = libc::AF_INET6.to_ne_bytes()[..2].to_vec();
        v6.extend(8080_u16.to_be_bytes());
        v6.extend([0; 4]);
        v6.extend("fe80::1".parse::<Ipv6Addr>().unwrap().octets());
        assert_eq!(Address::parse(&v6[..20]), Err(Errno::INVAL));
        assert_eq!(Address::parse(&v6).unwrap(), Address::Inet("[fe80::1]:8080".parse().unwrap()));
        v6.extend(3_u32.to_ne_bytes());
        assert_eq!(Address::parse(&v6).unwrap(), Address::Inet("[fe80::1%3]:8080".parse().unwrap()));
        let unix = |path: &[u8]| {
            let family = libc::AF_UNIX.to_ne_bytes();
            Address::parse(&[&family[..2], path].concat()).unwrap()
        };
        assert_eq!(unix(b"/run/x.sock\0rest"), Address::Unix("/run/x.sock".into()));
        assert_eq!(unix(b"/run/x.sock"), Address::Unix("/run/x.sock".into()));
        assert_eq!(unix(b"\0abstract"), Address::Other);
        assert_eq!(unix(b""), Address::Other);
        let netlink = |rest: [u8; 8]| {
            let family = libc::AF_NETLINK.to_ne_bytes();
            Address::parse(&[&family[..2], &[0; 2], &rest].concat()).unwrap()
        };
        assert_eq!(netlink([0; 8]), Address::Kernel);
        assert_eq!(netlink([1, 0, 0, 0, 0, 0, 0, 0]), Address::Other);
        assert_eq!(Address::parse(&[0, 0]), Ok(Address::Nobody));
        assert_eq!(Address::parse(&[0]), Err(Errno::INVAL));
    }

    #[test]
    fn every_way_to_write_an_address_is_that_address() {
        for (written, meant) in [
            ("0.0.0.0", "127.0.0.1"),
            ("::", "::1"),
            ("::ffff:0.0.0.0", "127.0.0.1"),
            ("::ffff:10.0.0.1", "10.0.0.1"),
            ("2001:db8::1", "2001:db8::1"),
        ] {
            assert_eq!(canonical(written.parse().unwrap()), meant.parse::<IpAddr>().unwrap());
        }
    }

    #[test]
    fn what_is_not_of_the_internet_is_private() {
        for private in [
            "127.0.0.1",
            "127.8.8.8",
            "0.1.2.3",
            "10.1.1.1",
            "172.16.0.1",
            "192.168.1.1",
            "169.254.169.254",
            "100.100.100.200",
            "192.0.0.192",
            "224.0.0.1",
            "255.255.255.255",
            "::1",
            "::",
            "fd00:ec2::254",
            "fe80::1",
            "fec0::1",
            "ff02::1",
            "::ffff:169.254.169.254",
            "64:ff9b::7f00:1",
            "2002:a00:1::1",
            "::127.0.0.1",
        ] {
            assert!(is_private(private.parse().unwrap()), "{private}");
        }
        for public in [
            "1.1.1.1",
            "100.63.0.1",
            "100.128.0.1",
            "172.32.0.1",
            "198.51.100.1",
            "2606:4700::1111",
            "64:ff9b::101:101",
            "2002:101:101::1",
        ] {
            assert!(!is_private(public.parse().unwrap()), "{public}");
        }
    }
}
