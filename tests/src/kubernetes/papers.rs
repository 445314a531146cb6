//! Who is who there: the certificates of the servers and of one client, and the key of the accounts' tokens.

use std::fs;
use std::net::Ipv4Addr;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa, KeyPair,
};

/// The file of the authority that signed everything.
pub(super) const CA: &str = "ca.crt";

/// Writes all of them. Clients of the server know it by its address and by the name that pods have for it.
pub(super) fn write(room: &Path, address: Ipv4Addr, client: &str) -> anyhow::Result<()> {
    let mut params = CertificateParams::new(Vec::new())?;
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.distinguished_name.push(DnType::CommonName, "Kubernetes of a test");
    let ca = CertifiedIssuer::self_signed(params, KeyPair::generate()?)?;
    fs::write(room.join(CA), ca.pem())?;
    let names = vec![address.to_string(), "kubernetes.default.svc".to_owned()];
    let server = CertificateParams::new(names)?;
    signed(room, "server", "kube-apiserver", server, &ca)?;
    let mut params = CertificateParams::new(Vec::new())?;
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
    signed(room, "client", client, params, &ca)?;
    let accounts = KeyPair::generate()?;
    fs::write(room.join("accounts.pub"), accounts.public_key_pem())?;
    secret(&room.join("accounts.key"), &accounts.serialize_pem())
}

fn signed(
    room: &Path,
    file: &str,
    name: &str,
    mut params: CertificateParams,
    ca: &CertifiedIssuer<'static, KeyPair>,
) -> anyhow::Result<()> {
    params.distinguished_name.push(DnType::CommonName, name);
    let key = KeyPair::generate()?;
    fs::write(room.join(format!("{file}.crt")), params.signed_by(&key, ca)?.pem())?;
    secret(&room.join(format!("{file}.key")), &key.serialize_pem())
}

/// A file that only its owner may read.
pub(super) fn secret(path: &Path, text: &str) -> anyhow::Result<()> {
    with_mode(path, text, 0o600)
}

/// A file with this mode, whatever the umask.
pub(super) fn with_mode(path: &Path, text: &str, mode: u32) -> anyhow::Result<()> {
    fs::write(path, text)?;
    Ok(fs::set_permissions(path, fs::Permissions::from_mode(mode))?)
}
