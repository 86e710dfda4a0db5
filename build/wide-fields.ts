/**
 * Gives fields that begin with 0 and later hold numbers beyond 32 bits the representation of such numbers from the start.
 *
 *     class Tlp {                             const wide$zero = new Float64Array(1)[0];
 *       address: Wide = 0;              =>    class Tlp {
 *       tag = 0;                                address: Wide = wide$zero;
 *                                               tag = 0;
 *
 * V8 represents small integers and floats differently. When a field changes from one to the other, its object changes its
 * hidden class. From then on compiled code checks the class of such an object at every use, and of every field that refers to
 * it. A field is wide by its type, or by its name when that ends in `Ps`: no instant fits 32 bits.
 *
 * The zero is read from an array of floats: a literal `0` would be an integer, and `-0` would be visible in results.
 */
import { parseAst } from 'rolldown/parseAst';
import { applyEdits, childrenOf, type Edit, isNode, type Node, nameOf } from './edit.ts';

const ZERO = 'wide$zero';
/** Names of types whose numbers need not fit 32 bits. */
const wideTypes: ReadonlySet<string> = new Set(['Wide', 'EventRef']);
/** A module without one of these words has no wide field. */
const hint = new RegExp(String.raw`: (${[...wideTypes].join('|')})\b|Ps\b[^=\n]*= 0;`);

/** @returns the module, in TypeScript, with wide fields. @throws SyntaxError if the source is not a module */
export function withWideFields(source: string): string {
  if (!hint.test(source)) return source;
  const program = parseAst(source, { lang: 'ts' }) as unknown as Node;
  const zeros = zerosIn(program);
  if (zeros.length === 0) return source;
  const { start } = childrenOf(program)[0]!;
  return applyEdits(source, [
    { start, end: start, text: `const ${ZERO} = new Float64Array(1)[0]!;\n` },
    ...zeros,
  ]);
}

function zerosIn(node: Node): readonly Edit[] {
  const inside = childrenOf(node).flatMap(zerosIn);
  if (!isWideZero(node)) return inside;
  const { start, end } = node['value'] as Node;
  return [...inside, { start, end, text: ZERO }];
}

/** A field that begins with 0 and is wide by its type or its name. */
function isWideZero(node: Node): boolean {
  if (node.type !== 'PropertyDefinition' || node['computed'] === true) return false;
  if (!isNode(node['value']) || node['value']['value'] !== 0) return false;
  return nameOf(node['key'] as Node).endsWith('Ps') || wideTypes.has(typeNameOf(node) ?? '');
}

function typeNameOf({ typeAnnotation: annotation }: Node): string | undefined {
  const type = isNode(annotation) ? annotation['typeAnnotation'] : undefined;
  const name = isNode(type) ? type['typeName'] : undefined;
  return isNode(name) ? nameOf(name) : undefined;
}
