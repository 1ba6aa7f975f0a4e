# SPDX-License-Identifier: BSD-2-Clause
"""Certificates for servers of tests."""
import datetime
import ipaddress


def make_certificates(path):
    """A CA and a certificate of it for 127.0.0.1 and localhost, and another CA with one
    for 127.0.0.1 only."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    now = datetime.datetime.now(datetime.timezone.utc)

    def issue(name, issuer, issuer_key, key, ca):
        builder = x509.CertificateBuilder(
            issuer, x509.Name([x509.NameAttribute(
                x509.NameOID.COMMON_NAME, name)]), key.public_key(),
            x509.random_serial_number(), now - datetime.timedelta(hours=1),
            now + datetime.timedelta(hours=1)).add_extension(
                x509.BasicConstraints(ca, None), True).add_extension(
                    x509.SubjectAlternativeName(names), False)
        return builder.sign(issuer_key, hashes.SHA256())

    names = [x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
    for ca in ("other", "ca"):
        ca_key = ec.generate_private_key(ec.SECP256R1())
        name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, ca)])
        root = issue(ca, name, ca_key, ca_key, True)
        key = ec.generate_private_key(ec.SECP256R1())
        leaf = issue("server", name, ca_key, key, False)
        names.append(x509.DNSName("localhost"))
        (path / f"{ca}.crt").write_bytes(root.public_bytes(
            serialization.Encoding.PEM))
        (path / f"{ca}-server.crt").write_bytes(leaf.public_bytes(
            serialization.Encoding.PEM))
        (path / f"{ca}-server.key").write_bytes(key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.TraditionalOpenSSL,
            serialization.NoEncryption()))
