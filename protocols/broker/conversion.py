"""Which properties a selector compares with numbers."""

from protocols.selector.tree import All, Any, Arithmetic, Between, Comparison, Literal, Negated, Negative, Node, Property

__all__ = ["compared_with_numbers"]


def compared_with_numbers(tree: Node | None) -> frozenset[str]:
    """Return the names of the properties that a selector with this tree compares with numbers."""
    return frozenset() if tree is None else frozenset(_compared(tree))


def _compared(node: Node) -> set[str]:
    if isinstance(node, (All, Any)):
        return {name for term in node.terms for name in _compared(term)}
    if isinstance(node, Negated):
        return _compared(node.term)
    if isinstance(node, Comparison):
        sides = [node.left, node.right]
    elif isinstance(node, Between):
        sides = [node.operand, node.least, node.most]
    else:
        return set()
    return {name for side in sides for name in _names(side)} if any(map(_is_number, sides)) else set()


def _is_number(node: Node) -> bool:
    """Return whether the value of a node is a number, whatever the message is."""
    if isinstance(node, Literal):
        return type(node.value) in (int, float)
    return isinstance(node, (Arithmetic, Negative))


def _names(node: Node) -> set[str]:
    """Return the properties from which the value of a node is computed."""
    if isinstance(node, Property):
        return {node.name}
    if isinstance(node, Negative):
        return _names(node.operand)
    return _names(node.left) | _names(node.right) if isinstance(node, Arithmetic) else set()
