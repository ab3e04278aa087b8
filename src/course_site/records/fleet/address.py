"""Address of a coordinator: TLS, or this machine alone. Whoever reaches a worker has it run pages as this user."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from course_site.records.plan import CannotStart

# What lies in the folder of --tls: the certificate that signed all others, our own, and its key.
TLS_FILES = ("ca.pem", "cert.pem", "key.pem")
_ADDRESS = re.compile(r"(?P<protocol>tcp|tls)://(?P<host>\[[0-9a-fA-F:]+\]|[^\s:/\[\]]+):(?P<port>\d{1,5})")
_LOOPBACK = re.compile(r"localhost|127(?:\.\d{1,3}){3}|\[::1\]")


@dataclass(frozen=True)
class Address:
    """An address where a coordinator listens, and the folder of certificates if it is spoken to through TLS."""

    protocol: str
    host: str
    port: int
    tls: Path | None = None

    def __str__(self) -> str:
        return f"{self.protocol}://{self.host}:{self.port}"

    @property
    def is_loopback(self) -> bool:
        """True where nothing but this machine reaches it."""
        return bool(_LOOPBACK.fullmatch(self.host))

    def security(self) -> Any:
        """Return Dask's description of the certificates; None without TLS."""
        if self.tls is None:
            return None
        from distributed import Security

        authority, cert, key = (str(self.tls / name) for name in TLS_FILES)
        roles = ("scheduler", "worker", "client")
        pairs = {
            f"tls_{role}_{what}": file for role in roles for what, file in (("cert", cert), ("key", key))
        }
        return Security(tls_ca_file=authority, require_encryption=True, **pairs)


def read_address(text: str, tls: Path | None) -> Address:
    """Read an address such as tcp://127.0.0.1:8786 or tls://gpu3:8786.

    Args:
        tls: folder with ca.pem, cert.pem and key.pem.
    Raises:
        CannotStart: not an address, or one that others could reach without a certificate, or a file is missing.
    """
    match = _ADDRESS.fullmatch(text)
    if not match or not 0 <= int(match["port"]) < 65536:
        raise CannotStart(f"{text}: is no address: write tcp://127.0.0.1:PORT or tls://HOST:PORT")
    address = Address(match["protocol"], match["host"], int(match["port"]), tls and tls.absolute())
    if address.protocol == "tcp" and not address.is_loopback:
        raise CannotStart(
            f"{text}: is neither loopback nor tls://: whoever reaches it could run pages here; "
            f"write tls://{address.host}:{address.port} and --tls FOLDER"
        )
    if address.protocol == "tcp" and tls is not None:
        raise CannotStart(f"{text}: --tls is for tls:// addresses: write tls://{address.host}:{address.port}")
    if address.protocol == "tls":
        if tls is None:
            raise CannotStart(f"{text}: needs --tls FOLDER, with {', '.join(TLS_FILES)} in it")
        for name in TLS_FILES:
            if not (tls / name).is_file():
                raise CannotStart(f"{tls / name}: is missing; --tls wants {', '.join(TLS_FILES)} there")
    return address
