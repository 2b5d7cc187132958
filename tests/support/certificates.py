"""A certificate authority for the tests, and a certificate that it signed for localhost and 127.0.0.1."""

import ipaddress
import ssl
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import NameOID


@dataclass(frozen=True)
class Certificates:
    """`ca_file` is for SSL_CERT_FILE; `file` has the certificate for localhost and its key."""

    ca_file: str
    file: str

    def context(self, *protocols: str) -> ssl.SSLContext:
        """A TLS context for a server that offers these protocols by ALPN."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.load_cert_chain(self.file)
        context.set_alpn_protocols(list(protocols))
        return context


def make(directory: Path) -> Certificates:
    """A new authority and certificate, in files of this directory."""
    ca_key, key = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    ca_name = _name("Pocketbell tests")
    usage = x509.KeyUsage(*[False] * 5, True, True, False, False)  # to sign certificates and revocations
    ca = _builder(ca_name, ca_name, ca_key).add_extension(x509.BasicConstraints(True, 0), critical=True)
    ca = ca.add_extension(usage, critical=True)
    names = [x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
    certificate = _builder(_name("localhost"), ca_name, key)
    certificate = certificate.add_extension(x509.SubjectAlternativeName(names), critical=False)
    issuer = x509.AuthorityKeyIdentifier.from_issuer_public_key(ca_key.public_key())
    certificate = certificate.add_extension(issuer, critical=False)
    made = Certificates(str(directory / "ca.pem"), str(directory / "localhost.pem"))
    Path(made.ca_file).write_bytes(_pem(ca.sign(ca_key, hashes.SHA256())))
    Path(made.file).write_bytes(key_pem(key) + _pem(certificate.sign(ca_key, hashes.SHA256())))
    return made


def key_pem(key: ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey) -> bytes:
    form = (serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    return key.private_bytes(*form)


def _name(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _builder(subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey) -> x509.CertificateBuilder:
    builder = x509.CertificateBuilder(issuer, subject, key.public_key(), x509.random_serial_number())
    now = datetime.now(UTC)
    builder = builder.not_valid_before(now - timedelta(days=1)).not_valid_after(now + timedelta(days=30))
    identifier = x509.SubjectKeyIdentifier.from_public_key(key.public_key())
    return builder.add_extension(identifier, critical=False)


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)
