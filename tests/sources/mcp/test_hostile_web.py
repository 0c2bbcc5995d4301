"""Runs `inside_hostile_web.py` in a network of its own, so that a bug could not send a packet."""

from __future__ import annotations

import ipaddress
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from tests.host.alone import check_alone
from tests.sources.mcp import inside_hostile_web

if TYPE_CHECKING:
    from pathlib import Path

    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey

pytestmark = [
    pytest.mark.requirement("C3.1", "C3.5", "C3.7", "C3.9", "C2.6"),
    pytest.mark.needs("unshare", "ip"),
]
NOW = datetime.now(tz=UTC)
DAY = timedelta(days=1)


def test_nobody_but_itself_is_harmed_by_a_server_over_http(tmp_path: Path) -> None:
    make_certificates(tmp_path)
    check_alone(inside_hostile_web, tmp_path, SSL_CERT_FILE=str(tmp_path / "authority.pem"))


def make_certificates(folder: Path) -> None:
    """An authority, what it has signed for us and for others, and one that nobody signed."""
    authority, name = ec.generate_private_key(ec.SECP256R1()), named("authority")
    ca = builder(authority, name, name).add_extension(x509.BasicConstraints(True, None), True)  # noqa: FBT003 - the library's own
    write(folder, "authority", ca.sign(authority, hashes.SHA256()), authority)
    for file, address, days in (
        ("fits", "127.0.0.1", 1),
        ("other", "127.0.0.2", 1),
        ("expired", "127.0.0.1", -1),
    ):
        key = ec.generate_private_key(ec.SECP256R1())
        made = builder(key, named(file), name, NOW + days * DAY)
        signed = addressed(made, address).sign(authority, hashes.SHA256())
        write(folder, file, signed, key)
    key = ec.generate_private_key(ec.SECP256R1())
    alone = addressed(builder(key, named("stranger"), named("stranger")), "127.0.0.1")
    write(folder, "stranger", alone.sign(key, hashes.SHA256()), key)


def named(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def builder(
    key: EllipticCurvePrivateKey,
    subject: x509.Name,
    issuer: x509.Name,
    ends: datetime = NOW + DAY,
) -> x509.CertificateBuilder:
    made = x509.CertificateBuilder().subject_name(subject).issuer_name(issuer)
    made = made.public_key(key.public_key()).serial_number(x509.random_serial_number())
    return made.not_valid_before(NOW - 2 * DAY).not_valid_after(ends)


def addressed(made: x509.CertificateBuilder, address: str) -> x509.CertificateBuilder:
    names = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address(address))])
    return made.add_extension(names, critical=False)


def write(
    folder: Path, name: str, certificate: x509.Certificate, key: EllipticCurvePrivateKey
) -> None:
    encoding, none = serialization.Encoding.PEM, serialization.NoEncryption()
    (folder / f"{name}.pem").write_bytes(certificate.public_bytes(encoding))
    secret = key.private_bytes(encoding, serialization.PrivateFormat.PKCS8, none)
    (folder / f"{name}.key").write_bytes(secret)
