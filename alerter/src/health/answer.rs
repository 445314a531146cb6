//! The answer at `/health`: status, headers, and the body in one of two formats.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE, ETAG, IF_NONE_MATCH};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::Response;
use axum::routing::get;
use serde::Serialize;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::manager::{Check, Health, Pulse, VERSION};
use crate::base::Base;
use crate::config::{CacheControl, HealthFormat, Settings};
use crate::listen::Unserved;
use crate::moment::Moment;
use crate::serving::{What, follow_and_run};

/// The path, and no other.
const PATH: &str = "/health";
/// The answer's media type in both formats.
const MEDIA_TYPE: HeaderValue = HeaderValue::from_static("application/health+json");

/// The namespace of the ids of the controllers' services.
const SERVICES: Uuid = Uuid::from_u128(0x5c1d_8a5e_3f0b_4c7e_9a63_1f2d_7b9e_44a0);
const DESCRIPTION: &str = "nova-host-alerter";

/// The id of the service on a controller: always the same there.
pub fn service_id(controller: &str) -> Uuid {
    Uuid::new_v5(&SERVICES, controller.as_bytes())
}

/// Serves it where the configuration says, until `stop`.
pub async fn run(health: Arc<Health>, base: Arc<Base>, unserved: Unserved, stop: CancellationToken) {
    let pick = |settings: &Settings| settings.healthcheck.served.clone();
    let answer = || router(Arc::clone(&health), Arc::clone(&base));
    // It has no secret, and Nova's specification asks it under a foreign name.
    let what = What { name: PATH, is_for_any_name: true };
    follow_and_run((&base, &unserved), what, pick, answer, stop).await;
}

/// Answers `GET /health`.
pub fn router(health: Arc<Health>, base: Arc<Base>) -> Router {
    Router::new().route(PATH, get(answer)).with_state((health, base))
}

async fn answer(State((health, base)): State<(Arc<Health>, Arc<Base>)>, headers: HeaderMap) -> Response {
    let settings = base.settings().healthcheck.clone();
    let pulse = Pulse { now: Moment::now(), store_busy: base.store.busy_for() };
    let (report, tag) = health.report_with_tag(pulse, settings.ttl);
    let fails = report.status == Status::Fail;
    // A condition counts only where the answer would be a success (RFC 9110, 13.2.1).
    let is_known = !fails && headers.get_all(IF_NONE_MATCH).iter().any(|known| names(known, &tag));
    let (code, text) = match (fails, is_known) {
        (true, _) => (StatusCode::SERVICE_UNAVAILABLE, body(&report, &base.controller, settings.format)),
        (_, true) => (StatusCode::NOT_MODIFIED, String::new()),
        _ => (StatusCode::OK, body(&report, &base.controller, settings.format)),
    };
    let mut response = Response::new(Body::from(text));
    *response.status_mut() = code;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, MEDIA_TYPE);
    headers.insert(ETAG, HeaderValue::from_str(&tag).expect("a number in quotes"));
    if let Some(cache) = cache_control(settings.cache, fails) {
        headers.insert(CACHE_CONTROL, HeaderValue::from_str(&cache).expect("a word and a number"));
    }
    response
}

/// Whether a list of tags has this one. Tags are compared weakly.
fn names(list: &HeaderValue, tag: &str) -> bool {
    let strong = |tag: &str| tag.trim().trim_start_matches("W/").to_owned();
    let list = list.to_str().unwrap_or_default();
    list.trim() == "*" || list.split(',').any(|known| strong(known) == strong(tag))
}

/// A failure is never cached, unless no header is configured.
fn cache_control(cache: CacheControl, fails: bool) -> Option<Cow<'static, str>> {
    match cache {
        CacheControl::Silent => None,
        CacheControl::MaxAge(age) if !fails => Some(format!("max-age={age}").into()),
        _ => Some("no-cache".into()),
    }
}

#[derive(Serialize)]
struct Root<'a, Notes, Checks> {
    status: &'static str,
    version: &'static str,
    #[serde(rename = "serviceId")]
    service_id: String,
    description: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    output: Option<&'a str>,
    notes: Notes,
    checks: BTreeMap<Cow<'static, str>, Checks>,
}

#[derive(Serialize)]
struct Notes<'a> {
    host: &'a str,
    hostname: &'a str,
}

#[derive(Serialize)]
struct One<'a> {
    #[serde(rename = "componentType", skip_serializing_if = "Option::is_none")]
    component: Option<&'static str>,
    status: &'static str,
    time: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    output: Option<&'a str>,
}

/// The body: the checks, and this controller's name alone.
pub fn body(report: &Report, controller: &str, format: HealthFormat) -> String {
    let text = match format {
        HealthFormat::Nova => serde_json::to_string(&nova(report, controller)),
        HealthFormat::Ietf => serde_json::to_string(&ietf(report, controller)),
    };
    text.expect("it has names and texts alone")
}

fn nova<'a>(report: &'a Report, controller: &'a str) -> Root<'a, Notes<'a>, One<'a>> {
    let checks = report.checks.iter().map(|(check, shown)| (check.name(), one(shown, None))).collect();
    root(report, controller, None, Notes { host: controller, hostname: controller }, checks)
}

/// In the draft the notes are a list, and so is each check, for several nodes. It wants an output with a warning too.
fn ietf<'a>(report: &'a Report, controller: &'a str) -> Root<'a, [String; 1], [One<'a>; 1]> {
    let one = |(check, shown): (&Check, &'a Shown)| (check.name(), [one(shown, Some(check.component()))]);
    let checks = report.checks.iter().map(one).collect();
    let worst = report.checks.values().filter(|shown| shown.status == report.status);
    let output = worst.filter_map(|shown| shown.output.as_deref()).next();
    root(report, controller, output, [format!("host: {controller}")], checks)
}

fn root<'a, N, C>(
    report: &Report,
    controller: &str,
    output: Option<&'a str>,
    notes: N,
    checks: BTreeMap<Cow<'static, str>, C>,
) -> Root<'a, N, C> {
    Root {
        status: report.status.as_str(),
        version: VERSION,
        service_id: service_id(controller).to_string(),
        description: DESCRIPTION,
        output,
        notes,
        checks,
    }
}

fn one<'a>(shown: &'a Shown, component: Option<&'static str>) -> One<'a> {
    let Shown { status, at, output } = shown;
    let time = jiff::Timestamp::from_second(at.wall.seconds()).unwrap_or(jiff::Timestamp::UNIX_EPOCH);
    let time = time.strftime("%Y-%m-%dT%H:%M:%S+00:00").to_string();
    One { component, status: status.as_str(), time, output: output.as_deref() }
}

/// The words of the specification and of the IETF's draft, from good to bad.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Status {
    /// All is well.
    Pass,
    /// It works, but somebody should check it.
    Warn,
    /// It does not work.
    Fail,
}

impl Status {
    /// The word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Warn => "warn",
            Self::Fail => "fail",
        }
    }
}

/// The last result of a check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Item {
    /// Its status.
    pub status: Status,
    /// Why, in a sentence; none where it passed.
    pub output: Option<String>,
    /// When. Its age is counted by the monotonic clock: a clock that is set makes nothing old.
    pub at: Moment,
}

impl Item {
    /// Whether the result is older than `ttl`; never, without one.
    pub(super) fn is_expired(&self, now: Instant, ttl: Option<Duration>) -> bool {
        ttl.is_some_and(|ttl| now.saturating_duration_since(self.at.instant) > ttl)
    }
}

/// A check in the answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shown {
    /// Its status.
    pub status: Status,
    /// When that was found.
    pub at: Moment,
    /// Why; there is always one where it does not pass.
    pub output: Option<String>,
}

/// The whole answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// The worst of all checks; `pass` if there is no result yet.
    pub status: Status,
    /// Each of them.
    pub checks: BTreeMap<Check, Shown>,
}

const EXPIRED: &str = "this check has had no result for longer than ttl: check with `nova-host-alerter status` whether the alerter still works";

/// Sums up: nothing known passes; what has expired is unknown, which is a warning, and a failure where all of it has.
pub fn sum_up(items: &BTreeMap<Check, Item>, now: Instant, ttl: Option<Duration>) -> Report {
    let all_expired = items.values().all(|item| item.is_expired(now, ttl));
    let unknown = if all_expired { Status::Fail } else { Status::Warn };
    let shown = |item: &Item| match item.is_expired(now, ttl) {
        false => Shown { status: item.status, at: item.at, output: item.output.clone() },
        true => Shown { status: unknown, at: item.at, output: Some(expired(item)) },
    };
    let checks: BTreeMap<Check, Shown> =
        items.iter().map(|(check, item)| (check.clone(), shown(item))).collect();
    let status = checks.values().map(|shown| shown.status).max().unwrap_or(Status::Pass);
    Report { status, checks }
}

fn expired(item: &Item) -> String {
    match &item.output {
        None => EXPIRED.to_owned(),
        Some(last) => format!("{EXPIRED}; the last result was {}: {last}", item.status.as_str()),
    }
}
