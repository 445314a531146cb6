//! The keys of `[kubernetes.NAME]`. All errors are found before anything runs.

use std::time::Duration;

use site::{Section, absolute, text_if};

use super::access::Kubeconfig;
use super::body::Mode;
use super::remediation::Template;
use crate::which::HostNames;

/// The longest time limit of an exchange, and the default, in seconds.
const LONGEST: u32 = 30;

/// What a `kubernetes` route is made of.
#[derive(Clone, Debug)]
pub struct Options {
    /// What becomes of a fenced host.
    pub mode: Mode,
    /// The API server, and who we are there.
    pub source: Kubeconfig,
    /// Where Machines are; if unset, in all namespaces.
    pub namespace: Option<String>,
    /// Which of a host's names Kubernetes knows.
    pub host_name: HostNames,
    /// Limit of a whole exchange.
    pub timeout: Duration,
    /// Whether what was done is undone when the host is back.
    pub clear: bool,
    /// The template of [`Mode::Remediation`].
    pub template: Option<Template>,
}

/// Reads the route's table. It asks for every key, so that each is checked whatever is wrong with the others.
pub(super) fn read(table: &mut Section<'_, '_>) -> Option<Options> {
    let mode = table.choice("mode", &Mode::WORDS);
    let source = source(table);
    let namespace = table.text("namespace", name);
    let host_name = HostNames::read(table);
    let timeout = table.number("timeout", 1..=LONGEST).unwrap_or(LONGEST);
    let clear = table.choice("when-returned", &[("clear", true), ("leave", false)]).unwrap_or(true);
    let template = template(table, mode);
    table.needs("mode", "set it to taint, condition, remediation or annotate");
    fitting(table, mode);
    let timeout = Duration::from_secs(timeout.into());
    let (mode, source) = (mode?, source?);
    let all = Options { mode, source, namespace, host_name, timeout, clear, template };
    table.is_sound().then_some(all)
}

/// `kubeconfig` with `context`.
fn source(table: &mut Section<'_, '_>) -> Option<Kubeconfig> {
    let file = table.text("kubeconfig", absolute);
    let context = table.text("context", context);
    table.needs("kubeconfig", "set it to the file with server and credentials");
    Some(Kubeconfig { file: file?, context })
}

/// The keys of the template, which belong to one mode.
fn template(table: &mut Section<'_, '_>, mode: Option<Mode>) -> Option<Template> {
    let api_version = table.text("template-api-version", api_version);
    let kind = table.text("template-kind", kind);
    let template_name = table.text("template-name", name);
    let namespace = table.text("template-namespace", name);
    if mode == Some(Mode::Remediation) {
        for key in ["template-api-version", "template-kind", "template-name"] {
            table.needs(key, "this mode needs it");
        }
    }
    Some(Template { api_version: api_version?, kind: kind?, name: template_name?, namespace })
}

/// Reports keys that another mode has.
fn fitting(table: &mut Section<'_, '_>, mode: Option<Mode>) {
    let unused = |without: &str| format!("has no effect without {without}: remove it");
    let is_other = mode.is_some_and(|mode| mode != Mode::Remediation);
    for key in ["template-api-version", "template-kind", "template-name", "template-namespace"] {
        table.complain_if(is_other, key, &unused("mode = \"remediation\""));
    }
    let is_of_node = matches!(mode, Some(Mode::Taint | Mode::Condition));
    table.complain_if(is_of_node, "namespace", &unused("mode = \"remediation\" or \"annotate\""));
}

/// A name of Kubernetes becomes a part of a path.
fn name(text: &str) -> Result<String, String> {
    let is_plain =
        |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'-' | b'.');
    let is_good = (1..=253).contains(&text.len()) && text.bytes().all(is_plain) && !text.starts_with('.');
    text_if(is_good, text, "must be a name of Kubernetes: small letters, digits, - and .")
}

fn api_version(text: &str) -> Result<String, String> {
    let parts = text.split_once('/').filter(|(group, version)| name(group).is_ok() && name(version).is_ok());
    let is_good = parts.is_some_and(|(_, version)| !version.contains('.'));
    let why = "must be a group and a version, such as \"infrastructure.cluster.x-k8s.io/v1beta1\"";
    text_if(is_good, text, why)
}

fn kind(text: &str) -> Result<String, String> {
    let is_plain = text.bytes().all(|byte| byte.is_ascii_alphanumeric());
    let is_good = text.strip_suffix("Template").is_some_and(|kind| !kind.is_empty() && is_plain);
    text_if(is_good, text, "must be a kind that ends with Template, such as \"Metal3RemediationTemplate\"")
}

fn context(text: &str) -> Result<String, String> {
    let is_good = !text.is_empty() && !text.contains(char::is_control);
    text_if(is_good, text, "must be the name of a context of the kubeconfig")
}
