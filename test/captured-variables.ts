/** Variables that functions inside of a function use and that are assigned to after they were declared: state that no object has. */
import { childrenOf, isNode, type Node, nameOf } from '../build/edit.ts';

const isFunction = (node: Node): boolean => /Function/.test(node.type) && isNode(node['body']);

/** Names that a pattern binds. */
function namesIn(pattern: unknown): string[] {
  if (Array.isArray(pattern)) return pattern.flatMap(namesIn);
  if (!isNode(pattern)) return [];
  if (pattern.type === 'Identifier') return [nameOf(pattern)];
  const { properties, elements, left, argument, value } = pattern;
  return [properties, elements, left, argument, value].flatMap(namesIn);
}

/** @returns their names, by the syntax tree of a module; names are not resolved, so it may be more than there are */
export function capturedVariables(program: Node): string[] {
  const own = isFunction(program) ? capturedIn(program) : [];
  return [...own, ...childrenOf(program).flatMap(capturedVariables)];
}

function capturedIn(outer: Node): string[] {
  const declared = new Set(namesIn(outer['params']));
  const assigned = new Set<string>();
  const captured = new Set<string>();
  /** Names that functions inside, down to this node, have for variables of their own. */
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

/** Parameters and variables of a function, of whatever block of it. */
function ownNamesOf(outer: Node): string[] {
  const visit = (node: Node): string[] => [
    ...(node.type === 'VariableDeclarator' ? namesIn(node['id']) : []),
    ...(isFunction(node) ? [] : childrenOf(node).flatMap(visit)),
  ];
  return [...namesIn(outer['params']), ...childrenOf(outer).flatMap(visit)];
}

/** Without names of members and properties, which are no variables. */
const usedChildrenOf = (node: Node): Node[] =>
  childrenOf(node).filter(
    (child) =>
      node['computed'] === true ||
      !(
        (node.type === 'MemberExpression' && child === node['property']) ||
        (node.type === 'Property' && child === node['key'] && node['shorthand'] !== true)
      ),
  );
