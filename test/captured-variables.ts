/** Variables used by inner functions and assigned after their declaration: state that no object holds. */
import { childrenOf, isNode, type Node, nameOf } from '../build/edit.ts';

const isFunction = (node: Node): boolean => /Function/.test(node.type) && isNode(node['body']);

/** Names assigned by a pattern. */
function namesIn(pattern: unknown): string[] {
  if (Array.isArray(pattern)) return pattern.flatMap(namesIn);
  if (!isNode(pattern)) return [];
  if (pattern.type === 'Identifier') return [nameOf(pattern)];
  const { properties, elements, left, argument, value } = pattern;
  return [properties, elements, left, argument, value].flatMap(namesIn);
}

/** @returns their names, from the syntax tree of a module; names are not resolved, so the list may be too long */
export function capturedVariables(program: Node): string[] {
  const own = isFunction(program) ? capturedIn(program) : [];
  return [...own, ...childrenOf(program).flatMap(capturedVariables)];
}

function capturedIn(outer: Node): string[] {
  const declared = new Set(namesIn(outer['params']));
  const assigned = new Set<string>();
  const captured = new Set<string>();
  /** Variables of the inner functions themselves, down to this node. */
  const visit = (node: Node, isInside: boolean, shadowed: ReadonlySet<string> = new Set()): void => {
    const inside = isInside || isFunction(node);
    const own = isFunction(node) ? new Set([...shadowed, ...ownNamesOf(node)]) : shadowed;
    if (node.type === 'VariableDeclaration' && !inside)
      for (const declaration of childrenOf(node))
        for (const name of namesIn(declaration['id']))
          if (node['kind'] === 'let') declared.add(name);
          else declared.delete(name);
    const isOuter = (name: string): boolean => !own.has(name);
    if (node.type === 'AssignmentExpression')
      for (const name of namesIn(node['left']).filter(isOuter)) assigned.add(name);
    if (node.type === 'UpdateExpression')
      for (const name of namesIn(node['argument']).filter(isOuter)) assigned.add(name);
    if (node.type === 'Identifier' && inside && isOuter(nameOf(node))) captured.add(nameOf(node));
    for (const child of usedChildrenOf(node)) visit(child, inside, own);
  };
  for (const child of usedChildrenOf(outer)) visit(child, false);
  return [...declared].filter((name) => assigned.has(name) && captured.has(name));
}

/** Parameters and variables of a function, in all of its blocks. */
function ownNamesOf(outer: Node): string[] {
  const visit = (node: Node): string[] => [
    ...(node.type === 'VariableDeclarator' ? namesIn(node['id']) : []),
    ...(isFunction(node) ? [] : childrenOf(node).flatMap(visit)),
  ];
  return [...namesIn(outer['params']), ...childrenOf(outer).flatMap(visit)];
}

/** Children without names of members and properties, which are not variables. */
const usedChildrenOf = (node: Node): Node[] =>
  childrenOf(node).filter(
    (child) =>
      node['computed'] === true ||
      !(
        (node.type === 'MemberExpression' && child === node['property']) ||
        (node.type === 'Property' && child === node['key'] && node['shorthand'] !== true)
      ),
  );
