"""Settings of resumes: `[resumes]` in windlass.toml, and over it WINDLASS_RESUMES_…."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, SecretStr

from windlass.apps.resumes.extraction.limits import MIB, Limits
from windlass.apps.resumes.structuring.models import ModelSettings

_OF_MODEL = ("provider", "url", "key", "timeout", "retries", "price_input", "price_output")


class ResumesSettings(BaseModel):
    """What can be set from outside."""

    model_config = ConfigDict(extra="forbid")

    database: str | None = None
    """where records are; the job store's own database if none is named, beside Redis an SQLite file"""
    files: str = "resumes"
    """where files are: a folder, which web processes and workers must share, or the URL of a bucket"""
    queue: str = "resume-processing"
    premium: Annotated[str, Field(pattern=r"^[^=]+(=.*)?$", max_length=200)] = "premium"
    """the attribute of a key, or the claim of a token, whose holder is served in the background: NAME or NAME=VALUE"""
    at_once: Annotated[int, Field(ge=1, le=64)] = 2
    """resumes that a web process processes at the same moment for all others"""
    waiting: Annotated[int, Field(ge=0, le=1000)] = 20
    """requests that may wait for that; more are told to come again"""
    children: Annotated[int, Field(ge=1, le=64)] = 2
    """processes that read documents, in each worker and web process"""
    largest: Annotated[int, Field(ge=1024, le=100 * MIB)] = 10 * MIB
    """bytes of a file"""
    pages: Annotated[int, Field(ge=1, le=500)] = 30
    """of a document that are read"""
    memory: Annotated[int, Field(ge=256 * MIB, le=16 * 1024 * MIB)] = 1_024 * MIB
    """bytes of memory of a process that reads documents"""
    seconds: Annotated[float, Field(ge=1, le=600)] = 20.0
    """that reading a document may take"""
    timeout: Annotated[int, Field(ge=10, le=86_400)] = 600
    """seconds that one job may take"""
    attempts: Annotated[int, Field(ge=1, le=1000)] = 5
    crashes: Annotated[int, Field(ge=1, le=100_000)] = 5
    """workers that may die of one job, which goes on at its last step each time, before it fails"""

    model: Annotated[str, Field(min_length=1, max_length=200)] | None = None
    """the model that structures; rules where none is named"""
    model_provider: Literal["openai", "anthropic"] = "openai"
    """whose interface its endpoint has; that of OpenAI is offered by many"""
    model_url: str | None = None
    """of the endpoint; the provider's own where none is named"""
    model_key: SecretStr | None = None
    model_timeout: Annotated[float, Field(gt=0, le=600)] = 60.0
    """seconds that one answer may take"""
    model_retries: Annotated[int, Field(ge=0, le=20)] = 2
    """how often a document waits for an endpoint that is away or busy, before the rules do it"""
    model_price_input: Annotated[float, Field(ge=0)] | None = None
    """US dollars for a million tokens that it reads"""
    model_price_output: Annotated[float, Field(ge=0)] | None = None
    """and that it writes"""

    @property
    def structuring(self) -> ModelSettings | None:
        """The model, if one is named."""
        if self.model is None:
            return None
        given = {name: getattr(self, f"model_{name}") for name in _OF_MODEL}
        return ModelSettings(model=self.model, **given)

    @property
    def limits(self) -> Limits:
        """The bounds of one document."""
        return Limits(largest=self.largest, pages=self.pages, memory=self.memory, seconds=self.seconds)

    def is_premium(self, attributes: dict[str, object]) -> bool:
        """Whether a caller of whom this is known is served in the background."""
        name, told, wanted = self.premium.partition("=")
        known = attributes.get(name)
        if told:
            return known is not None and str(known) == wanted
        return known is True or (isinstance(known, str) and known.lower() == "true")
