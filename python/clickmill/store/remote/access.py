"""What stores want to know of us: from the environment, or from files that it names; told to nobody else."""

from __future__ import annotations

import configparser
import os
from pathlib import Path
from typing import TYPE_CHECKING

from clickmill.errors import ConfigError
from clickmill.store.named_path import expanded, home, is_file
from clickmill.store.secret_file import read_secret_file

if TYPE_CHECKING:
    from collections.abc import Mapping

HTTP_TOKEN = "CLICKMILL_HTTP_TOKEN"
FS_UGI = "CLICKMILL_FS_UGI"
NOT_TEXT = "has bytes that are not UTF-8, which no credential has; set it anew, or unset it"

_AWS_KEYS = {
    "AWS_ACCESS_KEY_ID": "access_key_id",
    "AWS_SECRET_ACCESS_KEY": "secret_access_key",
    "AWS_SESSION_TOKEN": "session_token",
}
_FROM_PROFILE = {
    "aws_access_key_id": "access_key_id",
    "aws_secret_access_key": "secret_access_key",
    "aws_session_token": "session_token",
}


def secret(name: str, environ: Mapping[str, str] | None = None) -> str | None:
    """The variable `name`, or what is in the file that `name` with `_FILE` behind it names.

    Raises ConfigError where there is no secret in that file, or it is no text.
    """
    environ = os.environ if environ is None else environ
    value = environ.get(name)
    if value:
        if not is_text(value):
            raise ConfigError(f"{name}: {NOT_TEXT}")
        return value
    path = environ.get(f"{name}_FILE")
    if not path:
        return None
    try:
        file = expanded(path)
    except ConfigError as error:
        raise ConfigError(f"{name}_FILE: {error}") from None
    found = read_secret_file(file)
    if found.problem:
        raise ConfigError(f"{name}_FILE names `{path}`, which {found.problem}")
    return found.text


def is_text(value: str) -> bool:
    """Whether a variable holds text: Python has bytes that are none as halves of characters."""
    return not any("\ud800" <= letter <= "\udfff" for letter in value)


def hdfs_user() -> str | None:
    """The user of `user,password`, as older jobs give it; HDFS asks for no password."""
    ugi = secret(FS_UGI)
    return ugi.partition(",")[0].strip() or None if ugi else None


def s3_keys() -> dict[str, str]:
    """Keys for S3: of the environment, else of the shared file of credentials; empty where there are none."""
    keys = {key: value for name, key in _AWS_KEYS.items() if (value := secret(name))}
    return keys or _shared_keys()


def _shared_keys() -> dict[str, str]:
    named = os.environ.get("AWS_SHARED_CREDENTIALS_FILE")
    folder = home()
    path = Path(named) if named else folder and folder / ".aws" / "credentials"
    if path is None or not is_file(path):
        return {}
    profiles = configparser.ConfigParser(interpolation=None)
    try:
        profiles.read(path, encoding="utf-8")
    except (OSError, configparser.Error, UnicodeDecodeError) as error:
        # The words of the parser would show lines of the file.
        raise ConfigError(f"the credentials in `{path}` cannot be read: {type(error).__name__}") from error
    profile = os.environ.get("AWS_PROFILE", "default")
    if profile not in profiles:
        return {}
    section = profiles[profile]
    return {key: value for name, key in _FROM_PROFILE.items() if (value := section.get(name))}
