"""The choice between the kinds of a section, as the annotation of a key."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, get_args

from pydantic import GetJsonSchemaHandler, ValidationInfo
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from dynamics_cli.config.base import KEEP_UNKNOWN, Kind, Unknown
from dynamics_cli.config.registry import find_kind


class OneOf:
    """Says that the value of a key is one of the kinds of a section: `dataset: Annotated[Dataset, OneOf("dataset")]`.

    Args:
        section: that of the kinds.
        default: the kind of a mapping that names none.
        word: whether a kind may be named by one word, `relu` for `{kind: relu}`.

    """

    def __init__(self, section: str, *, default: str | None = None, word: bool = False) -> None:
        self.section, self.default, self.word = section, default, word

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> CoreSchema:
        dump = core_schema.plain_serializer_function_ser_schema(self._dump, info_arg=False) if self.word else None
        return core_schema.with_info_plain_validator_function(self._validate, serialization=dump)

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        """Return a note that `schema` replaces by the choice between the kinds that there are then."""
        return {"kinds": self.section, "default kind": self.default, "word": self.word}

    def _validate(self, value: object, info: ValidationInfo) -> Kind:
        if isinstance(value, Kind) and (value.section == self.section or isinstance(value, Unknown)):
            return value
        if self.word and isinstance(value, str):
            value = {"kind": value}
        if not isinstance(value, Mapping):
            raise PydanticCustomError("model_type", "must be a section")
        name = value.get("kind", self.default)
        if name is None:
            raise PydanticCustomError("union_tag_not_found", "has no kind")
        cls = find_kind(self.section, name) if isinstance(name, str) else None
        if cls is not None:
            return cls.model_validate({**value, "kind": name}, context=info.context)
        if info.context and info.context.get(KEEP_UNKNOWN) and isinstance(name, str):
            return Unknown.model_validate({**value, "kind": name, "of": self.section})
        raise PydanticCustomError("union_tag_invalid", "has an unknown kind")

    @staticmethod
    def _dump(value: Kind) -> Any:
        """Return the word for a kind that has all its defaults, so that a config reads as people write it."""
        fields = type(value).model_fields.items()
        plain = not (value.model_extra or value.file_keys) and all(
            getattr(value, name) == field.get_default(call_default_factory=True)
            for name, field in fields
            if name not in ("kind", "of")
        )
        return value.kind if plain else value.model_dump(exclude_none=True)


def one_of(field: Any) -> OneOf | None:
    """Return what a field of a section says about kinds: the section that its value, or each of its values, names."""
    for note in field.metadata:
        if isinstance(note, OneOf):
            return note
    for argument in _arguments(field.annotation):
        if isinstance(argument, OneOf):
            return argument
    return None


def _arguments(annotation: Any) -> Iterator[Any]:
    for argument in get_args(annotation):
        yield argument
        yield from _arguments(argument)
