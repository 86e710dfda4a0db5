/**
 * The places at which a program can stop: the start of each statement of a function, the condition of each `while`
 * iteration, and the expression that an arrow function returns. The editor offers breakpoints at their lines; the
 * worker puts a call at each, which reports the line before it runs.
 *
 *     postSend(qp, wr);      ──►   reached(12);postSend(qp, wr);
 *     while (left > 0) {     ──►   while (reached(13),left > 0) {
 *     () => postRecv(qp)     ──►   () => (reached(14),postRecv(qp))
 *
 * No line of the text moves: inserted code contains no line break.
 */
import { parser } from '@lezer/javascript';

type Node = ReturnType<typeof typescript.parse>['topNode'];

/** A place at which a program can stop. */
interface StopPlace {
  /** Line number from 1. */
  readonly line: number;
  /** Text positions of the code that runs there. */
  readonly from: number;
  readonly to: number;
  readonly shape: 'statement' | 'body' | 'condition' | 'expression';
}

/** The language of the lab's programs: TypeScript with types. */
export const typescript = parser.configure({ dialect: 'ts' });

const statements: ReadonlySet<string> = new Set([
  ...['ExpressionStatement', 'VariableDeclaration', 'ReturnStatement', 'ThrowStatement', 'IfStatement'],
  ...[
    'ForStatement',
    'DoStatement',
    'SwitchStatement',
    'TryStatement',
    'BreakStatement',
    'ContinueStatement',
  ],
  'LabeledStatement',
]);
const functions: ReadonlySet<string> = new Set([
  ...['FunctionDeclaration', 'FunctionExpression', 'ArrowFunction', 'MethodDeclaration'],
]);
/** Parents whose statement body needs braces around the body and the call. */
const bodyOwners: ReadonlySet<string> = new Set([
  'IfStatement',
  'ForStatement',
  'WhileStatement',
  'DoStatement',
]);

/**
 * Every place of a text, by position: one for each line and function, so that a line with several statements stops once
 * per run. A text that cannot be parsed has no places.
 */
export function stopPlaces(text: string): readonly StopPlace[] {
  const places: StopPlace[] = [];
  const lineAt = lineCounter(text);
  const taken = new Set<string>();
  const { topNode } = typescript.parse(text);
  let isWhole = true;
  topNode.cursor().iterate(({ node, type }) => {
    isWhole &&= !type.isError;
    const shape = shapeOf(node, lineAt);
    const owner = functionOf(node);
    if (shape === undefined || owner === undefined) return;
    const line = lineAt(node.from);
    const key = `${owner.from} ${line}`;
    if (taken.has(key)) return;
    taken.add(key);
    places.push({ line, from: node.from, to: node.to, shape });
  });
  return isWhole ? places : [];
}

/** The text with a call of `name` at each of its places. */
export function withStops(text: string, name: string): string {
  const pieces = stopPlaces(text).flatMap(({ line, from, to, shape }, order) => {
    const call = `${name}(${line})`;
    if (shape === 'statement') return [{ at: from, order, piece: `${call};` }];
    if (shape === 'condition') return [{ at: from + 1, order, piece: `${call},` }];
    const [open, close] = shape === 'body' ? [`{${call};`, '}'] : [`(${call},`, ')'];
    return [
      { at: from, order, piece: open },
      // An outer piece closes after an inner piece that ends at the same position.
      { at: to, order: -order, piece: close },
    ];
  });
  let [all, at] = ['', 0];
  for (const each of pieces.toSorted((left, right) => left.at - right.at || left.order - right.order)) {
    all += text.slice(at, each.at) + each.piece;
    at = each.at;
  }
  return all + text.slice(at);
}

/**
 * The line at which a breakpoint on a line stops: the line itself; for a line within a longer statement, the first line
 * of that statement; else the next line that can stop.
 * @returns undefined if no such line exists
 */
export function stopLineOf(text: string, line: number): number | undefined {
  const places = stopPlaces(text);
  if (places.some((place) => place.line === line)) return line;
  const within = text.split('\n')[line - 1];
  if (within === undefined) return undefined;
  const begin =
    text
      .split('\n')
      .slice(0, line - 1)
      .join('\n').length + (line === 1 ? 0 : 1);
  const at = begin + within.length - within.trimStart().length;
  const isBlank = within.trim() === '';
  for (
    let node: Node | null = isBlank ? null : typescript.parse(text).resolveInner(at, 1);
    node !== null;
    node = node.parent
  ) {
    if (isComment(node) || /^(?:Block|SwitchBody|ClassBody|Script)$/.test(node.name)) break;
    const found = places.find(({ from, to }) => from === node!.from && to === node!.to);
    if (found !== undefined) return found.line;
  }
  const after = places.filter((place) => place.line > line).map((place) => place.line);
  return after.length === 0 ? undefined : Math.min(...after);
}

function shapeOf(node: Node, lineAt: (at: number) => number): StopPlace['shape'] | undefined {
  const { name, parent } = node;
  if (parent === null) return undefined;
  if (parent.name === 'ArrowFunction')
    return name !== 'Block' && !isComment(node) && follows(node, 'Arrow') ? 'expression' : undefined;
  if (
    name === 'ParenthesizedExpression' &&
    (parent.name === 'WhileStatement' || parent.name === 'DoStatement')
  )
    return 'condition';
  if (!statements.has(name)) return undefined;
  if (parent.name === 'Block' || parent.name === 'SwitchBody') return 'statement';
  // If it shares a line with its owner, both stop together.
  return bodyOwners.has(parent.name) && lineAt(node.from) !== lineAt(parent.from) ? 'body' : undefined;
}

const isComment = ({ name }: Node): boolean => name.endsWith('Comment');

/** Whether a node directly follows another, ignoring comments. */
function follows(node: Node, name: string): boolean {
  let before = node.prevSibling;
  while (before !== null && isComment(before)) before = before.prevSibling;
  return before?.name === name;
}

/** The innermost function around a node. */
function functionOf(node: Node): Node | undefined {
  for (let each = node.parent; each !== null; each = each.parent) if (functions.has(each.name)) return each;
  return undefined;
}

/** Line numbers of text positions, from 1. */
function lineCounter(text: string): (at: number) => number {
  const begins = [0];
  for (let at = text.indexOf('\n'); at >= 0; at = text.indexOf('\n', at + 1)) begins.push(at + 1);
  return (at) => {
    let [low, high] = [0, begins.length];
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      if (begins[middle]! <= at) low = middle;
      else high = middle;
    }
    return low + 1;
  };
}
