//! `[healthcheck]`: where `/health` is answered, and what its answer says of its age.

use std::time::Duration;

use site::Section;

use super::listen::{Addresses, Served};

/// A year: no longer time makes sense, in seconds.
const LONGEST: u32 = 31_536_000;

/// The table; it counts only where it has a `uri`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Healthcheck {
    /// `uri`, `owner` and `group`; none by default.
    pub served: Option<Served>,
    /// `ttl`: how long the result of a check holds; none: forever.
    pub ttl: Option<Duration>,
    /// `cache-control`, or what follows from `ttl` where it is unset.
    pub cache: CacheControl,
    /// `format`.
    pub format: HealthFormat,
}

/// The `Cache-Control` of an answer that is no failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CacheControl {
    /// Nothing, nor does a failure.
    Silent,
    /// `no-cache`.
    NoCache,
    /// `max-age`, in seconds.
    MaxAge(u32),
}

/// How an answer is laid out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HealthFormat {
    /// As in Nova's specification of per-process health checks.
    Nova,
    /// As in the IETF's draft (draft-inadarei-api-health-check-06).
    Ietf,
}

/// Reads `[healthcheck]`.
pub(super) fn read(mut section: Section<'_, '_>, addresses: &mut Addresses) -> Healthcheck {
    let served = addresses.read(&mut section);
    let ttl = section.number("ttl", 0..=LONGEST).unwrap_or(300);
    let cache = section.whole("cache-control", -1..=LONGEST.into());
    let formats = [("nova", HealthFormat::Nova), ("ietf", HealthFormat::Ietf)];
    let format = section.choice("format", &formats).unwrap_or(HealthFormat::Nova);
    section.finish();
    let cache = match cache.unwrap_or(ttl.into()) {
        0 => CacheControl::Silent,
        age => u32::try_from(age).map_or(CacheControl::NoCache, CacheControl::MaxAge),
    };
    let ttl = (ttl > 0).then(|| Duration::from_secs(ttl.into()));
    Healthcheck { served, ttl, cache, format }
}
