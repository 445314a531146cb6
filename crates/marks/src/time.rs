//! Points in time as the journal keeps them.

use std::fmt;
use std::ops::{Add, Sub};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use time::format_description::parse_strftime_borrowed;
use time::format_description::well_known::Rfc3339;
use time::{OffsetDateTime, PrimitiveDateTime};

/// How far the clocks of two controllers may differ. A larger difference is reported, and a time further ahead does not
/// count.
pub const CLOCK_SKEW: Duration = Duration::from_secs(120);

/// Milliseconds since the Unix epoch, by the wall clock; in JSON RFC 3339. Waiting is never measured with it, only dated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Timestamp(pub i64);

impl Timestamp {
    /// The wall clock's time; a clock before 1970 counts as 1970.
    pub fn now() -> Self {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
    }

    /// From whole seconds since the epoch.
    pub fn from_seconds(seconds: i64) -> Self {
        Self(seconds.saturating_mul(1000))
    }

    /// Whole seconds since the epoch, rounded down.
    pub fn seconds(self) -> i64 {
        self.0.div_euclid(1000)
    }

    /// How far apart two points are, whichever is the earlier.
    pub fn distance(self, other: Self) -> Duration {
        Duration::from_millis(self.0.abs_diff(other.0))
    }

    /// From `earlier` to here; zero where `earlier` lies later (a clock was set back).
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_millis(u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0))
    }

    /// Reads a time of RFC 3339.
    ///
    /// # Errors
    /// The text is none.
    pub fn parse(text: &str) -> Result<Self, time::error::Parse> {
        let milliseconds =
            OffsetDateTime::parse(text, &Rfc3339)?.unix_timestamp_nanos().div_euclid(1_000_000);
        Ok(Self(i64::try_from(milliseconds).expect("the years of RFC 3339 have four digits")))
    }

    /// In UTC, in a format of `strftime`. A time after the year 9999 is the last moment of that year.
    pub fn written(self, format: &str) -> String {
        let end = if self.0 < 0 { PrimitiveDateTime::MIN } else { PrimitiveDateTime::MAX };
        let at = OffsetDateTime::from_unix_timestamp_nanos(i128::from(self.0) * 1_000_000);
        let format = parse_strftime_borrowed(format).expect("our own formats are tried by tests");
        at.unwrap_or(end.assume_utc())
            .format(&format)
            .expect("a date with a time has all that a format names")
    }

    /// RFC 3339, UTC, in whole seconds.
    pub fn rfc3339_seconds(self) -> String {
        self.written("%Y-%m-%dT%H:%M:%SZ")
    }

    /// RFC 3339, UTC, to the millisecond.
    pub fn rfc3339(self) -> String {
        format!("{}.{:03}Z", self.written("%Y-%m-%dT%H:%M:%S"), self.0.rem_euclid(1000))
    }
}

/// A boot of this machine, and when it began by the wall clock as that goes now: two readings within one boot show by how much the
/// clock was set between them, whether or not a program ran meanwhile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Boot {
    /// The kernel's id of it.
    pub id: String,
    /// The wall clock less the time since the boot.
    pub began: Timestamp,
}

impl Boot {
    /// By how many milliseconds the wall clock was set since an earlier reading, where a second and more counts; none where the machine
    /// was booted in between, since nobody can know it then.
    pub fn set_since(&self, earlier: &Self) -> Option<i64> {
        let set = self.began.0.saturating_sub(earlier.began.0);
        (self.id == earlier.id).then_some(if set.unsigned_abs() >= 1000 { set } else { 0 })
    }
}

impl Add<Duration> for Timestamp {
    type Output = Self;
    fn add(self, by: Duration) -> Self {
        Self(self.0.saturating_add(i64::try_from(by.as_millis()).unwrap_or(i64::MAX)))
    }
}

impl Sub<Duration> for Timestamp {
    type Output = Self;
    fn sub(self, by: Duration) -> Self {
        Self(self.0.saturating_sub(i64::try_from(by.as_millis()).unwrap_or(i64::MAX)))
    }
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.rfc3339())
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text).map_err(D::Error::custom)
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:03}", self.seconds(), self.0.rem_euclid(1000))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_get_a_time_as_rfc_3339() {
        let at = Timestamp(1_700_000_000_123);
        assert_eq!(at.rfc3339(), "2023-11-14T22:13:20.123Z");
        assert_eq!(at.rfc3339_seconds(), "2023-11-14T22:13:20Z");
        for text in ["2023-11-14T22:13:20.123Z", "2023-11-14T23:13:20.123999+01:00"] {
            assert_eq!(Timestamp::parse(text), Ok(at), "{text}");
        }
        assert!(Timestamp::parse("2023-11-14T22:13:20").is_err(), "where?");
        assert_eq!(Timestamp(-1).rfc3339(), "1969-12-31T23:59:59.999Z");
        assert_eq!(Timestamp(i64::MAX).rfc3339_seconds(), "9999-12-31T23:59:59Z");
    }

    #[test]
    fn seconds_round_down_also_before_the_epoch() {
        assert_eq!(Timestamp(1999).seconds(), 1);
        assert_eq!(Timestamp(-1).seconds(), -1);
    }

    #[test]
    fn points_lie_apart_in_both_directions() {
        let (early, late) = (Timestamp::from_seconds(2), Timestamp(5000));
        let apart = Duration::from_secs(3);
        assert_eq!([early.distance(late), late.distance(early), late.since(early)], [apart; 3]);
        assert!(Timestamp::now() > Timestamp::from_seconds(1_700_000_000));
    }

    #[test]
    fn arithmetic_saturates_instead_of_wrapping() {
        assert_eq!(Timestamp(i64::MAX) + Duration::from_secs(1), Timestamp(i64::MAX));
        assert_eq!(Timestamp(i64::MIN) - Duration::MAX, Timestamp(i64::MIN));
        assert_eq!(Timestamp(5).since(Timestamp(9)), Duration::ZERO);
    }
}
