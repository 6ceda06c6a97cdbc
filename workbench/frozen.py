"""Base of all configurations: frozen, strict, and refused in one line that names field, value and way out."""

from __future__ import annotations

import difflib
import re
from typing import TYPE_CHECKING, Any, Self, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from workbench.errors import ConfigError, InputError
from workbench.i18n import marked, phrase

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

M = TypeVar("M", bound=BaseModel)


class Frozen(BaseModel):
    """Base of all configurations: immutable, and strict about unknown fields."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True, allow_inf_nan=False)

    def replace(self, **changes: Any) -> Self:
        """Return a copy with some fields changed; the copy is checked as if it was built anew."""
        return parse(type(self), self.model_dump(by_alias=True) | changes)


def parse(model: type[M], data: Any, *, where: str = "", error: type[InputError] = ConfigError) -> M:
    """Build a configuration from plain data.

    Args:
        model: the configuration class.
        data: a mapping, such as a loaded YAML document.
        where: prefix of the field's name in an error, such as a file's name.
        error: the class of error to raise.

    Raises:
        InputError: one line that names the first bad field, its value, what was expected and what to do.
    """
    try:
        return model.model_validate(data)
    except ValidationError as bad:
        raise _explain(model, bad, where, error) from None
    except InputError as clash:  # of a rule about several fields
        what = f"{where}: {clash.what}" if where else clash.what
        raise error(what, clash.value, clash.expected, clash.fix) from None


def _explain(model: type[BaseModel], bad: ValidationError, where: str, error: type[InputError]) -> InputError:
    # A name that is not known explains one that is missing, so it goes first.
    first = min(bad.errors(include_url=False), key=lambda one: one["type"] != "extra_forbidden")
    path = ".".join(str(part) for part in first["loc"]) or model.__name__
    what = f"{where}: {path}" if where else path
    if first["type"] == "extra_forbidden":
        name = str(first["loc"][-1])
        known = sorted(_fields_at(model, first["loc"][:-1]))
        near = difflib.get_close_matches(name, known, 1)
        fix = phrase("did you mean {name}?", name=near[0]) if near else phrase("remove it")
        return error(what, name, phrase("a known field ({names})", names=", ".join(known)), fix)
    if first["type"] == "missing":
        return error(what, phrase("nothing"), phrase("a value"), phrase("add {name}", name=first["loc"][-1]))
    one_of = first["type"] in ("literal_error", "union_tag_invalid")
    fix = phrase("choose one of these") if one_of else phrase("correct it")
    return error(what, first["input"], expected_of(first), fix)


_WHOLE, _NUMBER = marked("a whole number"), marked("a number")
_TRUTH, _FIELDS = marked("true or false"), marked("fields with values")
_EXPECTED = {  # what pydantic_core calls an error: what would have been right; {} holds that error's own context
    **dict.fromkeys(("int_parsing", "int_type", "int_from_float"), _WHOLE),
    "int_parsing_size": marked("a smaller whole number"),
    **dict.fromkeys(("float_parsing", "float_type"), _NUMBER),
    "finite_number": marked("a number that is not infinite"),
    **dict.fromkeys(("bool_parsing", "bool_type"), _TRUTH),
    "greater_than": marked("more than {gt}"),
    "greater_than_equal": marked("{ge} or more"),
    "less_than": marked("less than {lt}"),
    "less_than_equal": marked("{le} or less"),
    "string_type": marked("text"),
    "string_too_short": marked("{min_length} or more characters"),
    "string_too_long": marked("{max_length} or fewer characters"),
    "string_pattern_mismatch": marked("letters, digits, _ and -, with a letter first"),  # right for both that we have
    **dict.fromkeys(("list_type", "tuple_type"), marked("a list")),
    "too_short": marked("{min_length} or more entries"),
    "too_long": marked("{max_length} or fewer entries"),
    **dict.fromkeys(("model_type", "model_attributes_type", "dict_type"), _FIELDS),
    "union_tag_invalid": marked("one of {expected_tags}"),
    "union_tag_not_found": marked("one with the field {discriminator}"),
    "none_required": marked("nothing"),
}


def expected_of(error: ErrorDetails) -> str:
    """What would have been right, in the words of a person, for one of a validation's errors."""
    kind, context = error["type"], error.get("ctx", {})
    if kind == "literal_error":
        names = re.findall(r"'([^']*)'", context["expected"])
        return phrase("one of {names}", names=", ".join(names)) if len(names) > 1 else phrase("{name}", name=names[0])
    if kind in _EXPECTED:
        shown = {
            name: f"{one:g}" if isinstance(one, float) else str(one).replace("'", "") for name, one in context.items()
        }
        return phrase(_EXPECTED[kind], **shown)
    return error["msg"].replace("Input should be ", "").replace("Value error, ", "")


def _fields_at(model: type[BaseModel], path: tuple[int | str, ...]) -> set[str]:
    """Names of the fields of the model that ``path`` leads to, as a file would spell them."""
    here: Any = model.model_json_schema(by_alias=True)
    root = here
    for part in path:
        here = _resolve(root, here)
        if isinstance(part, int):
            here = here.get("items", {})
        elif part in here.get("properties", {}):
            here = here["properties"][part]
        else:  # a tag of a discriminated union
            options = here.get("oneOf") or here.get("anyOf") or []
            named = [_resolve(root, o) for o in options]
            here = next((o for o in named if o.get("properties", {}).get("kind", {}).get("const") == part), here)
    return set(_resolve(root, here).get("properties", {}))


def _resolve(root: Any, node: Any) -> Any:
    """Follow ``$ref`` and single-member ``allOf``/``anyOf`` down to a schema with properties."""
    while True:
        if "$ref" in node:
            node = root["$defs"][node["$ref"].rsplit("/", 1)[-1]]
        elif len([o for o in node.get("anyOf", []) if o.get("type") != "null"]) == 1:
            node = next(o for o in node["anyOf"] if o.get("type") != "null")
        else:
            return node
