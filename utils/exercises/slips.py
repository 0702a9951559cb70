"""Errors that are the same slip in every exercise, and what to say of them."""

import dis
import inspect
import re
from collections.abc import Sequence
from typing import Any

from utils.exercises.shown import cut
from utils.exercises.stubs import code_of
from utils.exercises.values import Raised

# What the text of an error looks like, and what to say of it.
_SLIPS = [
    (r"AttributeError: .*(before Module\.__init__\(\) call|object has no attribute '_(modules|\w+_hooks|parameters)')",
     "__init__ has to call super().__init__() before it does anything else"),
    (r"\w+Error: .*name 'self' is not defined", "self is missing: it is the first parameter of every method"),
    (r"NameError: .*name '(\w+)' is not defined", "the name {0} is not defined: is it spelled right?"),
    (r"UnboundLocalError: .*variable '(\w+)'", "{0} is used before it has a value"),
    (r"\w+Error: 'NoneType' object (has no attribute '\w+'|is not \w+)",
     "a None is used as if it were a value: something before it returns nothing"),
    (r"RuntimeError: mat1 and mat2 shapes cannot be multiplied \((\d+)x(\d+) and (\d+)x(\d+)\)",
     "shapes ({0}, {1}) and ({2}, {3}) cannot be multiplied: {1} and {2} should be equal"),
    (r"RuntimeError: size mismatch, got input \((\d+)\), mat \((\d+)x(\d+)\), vec \((\d+)\)",
     "a matrix of shape ({1}, {2}) and a vector of {3} entries cannot be multiplied"),
    (r"RuntimeError: inconsistent tensor size, expected tensor \[(\d+)\] and src \[(\d+)\]",
     "vectors of {0} and of {1} entries have no dot product"),
    (r"RuntimeError: The size of tensor a \((\d+)\) must match the size of tensor b \((\d+)\) at .* (\d+)",
     "the shapes do not fit together: {0} and {1} entries along axis {2}"),
    (r"RuntimeError: .*batch.* must have .*size|RuntimeError: Expected size for first two dimensions of batch2",
     "the shapes of the two factors do not fit together"),
    (r"RuntimeError: view size is not compatible", "view cannot read the numbers in that order: reshape copies them"),
    (r"RuntimeError: shape '\[(.*)\]' is invalid for input of size (\d+)", "{1} numbers do not fill the shape ({0})"),
    (r"RuntimeError: Tensors must have same number of dimensions: got (\d+) and (\d+)",
     "tensors with {0} and with {1} axes cannot be concatenated: does one of them lack an axis?"),
    (r"RuntimeError: zero-dimensional tensor .* cannot be concatenated",
     "a tensor without axes cannot be concatenated: give it an axis, for example with x[None]"),
    (r"RuntimeError: Sizes of tensors must match except in dimension (\d+). Expected size (\d+) but got size (\d+)",
     "the shapes do not fit for joining along axis {0}: {1} and {2} entries along another axis"),
    (r"RuntimeError: stack expects each tensor to be equal size, but got \[(.*)\] at entry 0 and \[(.*)\] at entry",
     "stack needs equal shapes, and gets ({0}) and ({1})"),
    (r"IndexError: Dimension out of range \(expected to be in range of \[(\S+), (\d+)\], but got (\S+)\)",
     "there is no axis {2}: the axes are {0} to {1}"),
    (r"IndexError: too many indices for tensor of dimension (\d+)", "there are more indices than the tensor has axes"),
    (r"RuntimeError: result type (\w+) can't be cast to the desired output type (\w+)",
     "numbers of dtype {0} cannot be written into a tensor of dtype {1}"),
    (r"RuntimeError: a (view of a )?leaf Variable that requires grad .*in-place",
     "a parameter that is learned cannot be changed in place"),
    (r"RuntimeError: Can't call numpy\(\) on Tensor that requires grad",
     "it requires a gradient: detach it before it becomes an array"),
    (r"TypeError: only integer tensors of a single element can be converted to an index",
     "a tensor of several numbers is used as one index"),
    (r"IndexError: tensors used as indices must be long", "an index holds integers, or True and False"),
    (r"RuntimeError: expected .* to have the same dtype, but got: (?:c10::)?(\w+) != (?:c10::)?(\w+)",
     "tensors of dtype {0} and {1} are multiplied: convert one of them"),
    (r"RuntimeError: Boolean value of Tensor with more than one value is ambiguous",
     "a tensor of several values is used as one True or False"),
    (r"ValueError: only one element tensors", "a tensor of several numbers is used as one number"),
    (r"RuntimeError: a Tensor with (\d+) elements cannot be converted to Scalar",
     "a tensor of {0} entries is used as one number"),
    (r"TypeError: (slice indices must be integers|.*must be tuple of ints,? ?but got .*float|'float' object cannot be)"
     r"|TypeError: view\(\): argument 'size' failed",
     "a size or an index is not an integer: // divides to an integer"),
    (r"(Type|Attribute)Error: (.*must be \w+, not (builtin_function_or_)?method|'builtin_function_or_method' object)",
     "a method is used as a value: is () missing, or is it the wrong name?"),
    (r"RuntimeError: (Subtraction|Negation), the `-` operator, ", "- is not for True and False: ~ inverts them"),
    (r"TypeError: (?:\w+\(\): )?(\w+)\(\) received an invalid combination of arguments - got \((.*?)\)",
     "{0} cannot take ({1})"),
    (r"RuntimeError: .*(Expected attn_mask dtype|Explicit attn_mask should not be set)",
     "attn_mask is boolean or floating-point, and is not given together with is_causal=True"),
    (r"TypeError: unsupported operand.* for \^|\w+Error: \"bitwise_xor", "^ is not a power in Python: write **"),
    (r"ValueError: too many values to unpack \(expected (\d+)", "there are more than {0} values for {0} names"),
    (r"ValueError: not enough values to unpack \(expected (\d+), got (\d+)\)", "there are {1} values for {0} names"),
    (r"RuntimeError: unflatten: Provided sizes (.*) don't multiply up to the size of dim \S+ \((\d+)\)",
     "an axis of {1} entries cannot be split into {0}"),
    (r"TypeError: expected Tensor as element (\d+) in argument 0, but got ([\w.]+)",
     "only tensors are joined, and the item at index {0} is of type {1}"),
    (r"RuntimeError: Expected target size (\[.*\]), got (\[.*\])", "targets of shape {0} are expected, and {1} came"),
    (r"\w+Error: \"bitwise_\w+\" not implemented for '(\w+)'", "&, | and ~ are for True and False, not for dtype {0}"),
    (r"IndexError: only integers, slices .*\(got (\w+)\)", "an index of type {0} is used: it should be an integer"),
    (r"RuntimeError: The expanded size of the tensor \((\d+)\) must match the existing size \((\d+)\)",
     "{1} entries do not fit where there are {0}"),
    (r"TypeError: (cat|stack)\(\)(?:: argument 'tensors' .*must be tuple of Tensors, not Tensor| takes from 1 to 2)",
     "{0} takes the tensors as one list: {0}([a, b])"),
    (r"(RecursionError): ", "it calls itself without end"),
    (r"MemoryError|RuntimeError: .*(not enough memory|alloc_cpu)", "it asks for too much memory"),
]  # fmt: skip


def slip(raised: Raised) -> str | None:
    """Return the sentence on an error that is a common slip."""
    for pattern, sentence in _SLIPS:
        if found := re.match(pattern, f"{raised.kind.__name__}: {raised.text}"):
            return f"{raised.kind.__name__}: {sentence.format(*found.groups())}"
    return None


def spelled(raised: Raised) -> str:
    """Return an error's kind and text, or the kind alone where it has no text."""
    return cut(f"{raised.kind.__name__}: {raised.text}".removesuffix(": "), 130)


def without_self(answer: Any) -> str | None:
    """Return the name of the first method of a class that cannot take its object."""
    if not isinstance(answer, type):
        return None
    for name, method in vars(answer).items():
        if inspect.isfunction(method):
            parameters = list(inspect.signature(method).parameters.values())
            takes_any = any(p.kind is p.VAR_POSITIONAL for p in parameters[:1])
            if not takes_any and (not parameters or parameters[0].name not in ("self", "this", "module", "_")):
                return name
    return None


def parameters(answer: Any, arguments: Sequence, names: Sequence[str]) -> str | None:
    """Return a sentence if a function cannot take the arguments of the exercise, or takes them in another order."""
    if isinstance(answer, type) or not names:
        return None
    try:
        signature = inspect.signature(answer)
    except (TypeError, ValueError):
        return None
    taken, given = list(signature.parameters), list(names[: len(arguments)])
    if taken != given and sorted(taken) == sorted(given):
        return f"your function has the parameters in another order than the exercise: {cut(', '.join(given), 80)}"
    try:
        signature.bind(*arguments)
    except TypeError:
        marks = {"VAR_POSITIONAL": "*{}", "VAR_KEYWORD": "**{}", "KEYWORD_ONLY": "{} (by name only)"}
        taken = [marks.get(one.kind.name, "{}").format(one.name) for one in signature.parameters.values()]
        rest = f"its parameters are {cut(', '.join(taken), 50)}" if taken else "it has no parameters"
        return f"the exercise calls your function with {cut(', '.join(given), 60)}, but {rest}"
    return None


def uses(answer: Any, *words: str) -> bool:
    """Return whether a function's code has one of these names or operators in it."""
    code = code_of(answer)
    steps = dis.get_instructions(code) if code else ()
    return any(step.argrepr in words or str(step.argval) in words for step in steps)
