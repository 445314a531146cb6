//! The answer at `/health`: status, headers, and the body in one of two formats.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE, ETAG, IF_NONE_MATCH};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::Response;
use axum::routing::get;
use marks::id::worked_out;
use serde::Serialize;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::check::{Check, VERSION};
use super::manager::{Health, Pulse};
use super::summary::{Report, Shown, Status};
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
    worked_out(&SERVICES, controller)
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
    let time = at.wall.written("%Y-%m-%dT%H:%M:%S+00:00");
    One { component, status: status.as_str(), time, output: output.as_deref() }
}
