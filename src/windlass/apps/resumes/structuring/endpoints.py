"""Asking a model through its provider's own library: no tools, one answer, bounded in time."""

from __future__ import annotations

import asyncio
from typing import Protocol

from windlass.apps.resumes.structuring.models import Answer, ModelSettings, Question, tokens

_WAIT = 10.0
_LONGEST = 900.0


class Unreachable(Exception):
    """The endpoint is away or busy: it may be asked again."""

    def __init__(self, reason: str, after: float = _WAIT) -> None:
        self.reason, self.after = reason, after
        super().__init__(reason)


class Refused(Exception):
    """The endpoint will not answer this question, however often it is asked."""


class Endpoint(Protocol):
    async def ask(self, question: Question) -> Answer:
        """The answer; Unreachable or Refused say why there is none."""
        ...


def endpoint_of(settings: ModelSettings) -> Endpoint:
    """The endpoint that settings name; its library is loaded here."""
    return _Anthropic(settings) if settings.provider == "anthropic" else _OpenAI(settings)


class _OpenAI:
    def __init__(self, settings: ModelSettings) -> None:
        import openai

        self._library, self._settings = openai, settings

    async def ask(self, question: Question) -> Answer:
        settings, library = self._settings, self._library
        try:
            # A client for each question: clients belong to the event loop in which they were made.
            async with (
                asyncio.timeout(settings.timeout),
                library.AsyncOpenAI(
                    api_key=_key(settings), base_url=settings.url, timeout=settings.timeout, max_retries=0
                ) as client,
            ):
                came = await client.chat.completions.create(
                    model=settings.model,
                    messages=[
                        {"role": "system", "content": question.system},
                        {"role": "user", "content": question.user},
                    ],
                    max_tokens=settings.most_tokens,
                    temperature=0,
                    response_format={"type": "json_object"},
                )
                text = came.choices[0].message.content if came.choices else None
                return Answer(text or "", tokens(came.usage, "prompt_tokens"), tokens(came.usage, "completion_tokens"))
        except (TimeoutError, library.APITimeoutError):
            raise Unreachable(f"the model took more than {settings.timeout:g} seconds") from None
        except library.APIConnectionError:
            raise Unreachable("the model's endpoint cannot be reached") from None
        except library.APIStatusError as error:
            raise _of_status(error.status_code, error.response.headers.get("retry-after")) from None
        except (library.OpenAIError, AttributeError, TypeError, ValueError, IndexError):
            raise Refused("the model's endpoint does not answer as its interface says") from None


class _Anthropic:
    def __init__(self, settings: ModelSettings) -> None:
        import anthropic

        self._library, self._settings = anthropic, settings

    async def ask(self, question: Question) -> Answer:
        settings, library = self._settings, self._library
        try:
            async with (
                asyncio.timeout(settings.timeout),
                library.AsyncAnthropic(
                    api_key=_key(settings), base_url=settings.url, timeout=settings.timeout, max_retries=0
                ) as client,
            ):
                came = await client.messages.create(
                    model=settings.model,
                    system=question.system,
                    messages=[{"role": "user", "content": question.user}],
                    max_tokens=settings.most_tokens,
                )
                text = "".join(block.text for block in came.content if block.type == "text")
                return Answer(text, tokens(came.usage, "input_tokens"), tokens(came.usage, "output_tokens"))
        except (TimeoutError, library.APITimeoutError):
            raise Unreachable(f"the model took more than {settings.timeout:g} seconds") from None
        except library.APIConnectionError:
            raise Unreachable("the model's endpoint cannot be reached") from None
        except library.APIStatusError as error:
            raise _of_status(error.status_code, error.response.headers.get("retry-after")) from None
        except (library.AnthropicError, AttributeError, TypeError, ValueError, IndexError):
            raise Refused("the model's endpoint does not answer as its interface says") from None


def _key(settings: ModelSettings) -> str:
    return settings.key.get_secret_value() if settings.key is not None else "none"


def _of_status(status: int, after: str | None) -> Unreachable | Refused:
    if status in {408, 409, 425, 429} or status >= 500:
        wait = float(after) if after is not None and after.replace(".", "", 1).isdigit() else _WAIT
        return Unreachable(f"the model's endpoint answered {status}", min(max(wait, 1.0), _LONGEST))
    return Refused(f"the model's endpoint answered {status}")
