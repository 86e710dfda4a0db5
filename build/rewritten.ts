/** Rewrites built modules after their translation to JavaScript: both rewritings use one syntax tree, whose parsing takes most of the time. */
import { parseAst } from 'rolldown/parseAst';
import type { Node } from './edit.ts';
import { withLocalNamesBy } from './local-names.ts';
import { plainFieldEdits } from './plain-fields.ts';

/** @returns the module with plain fields and local names. @throws SyntaxError if the source is not a module */
export function rewritten(source: string): string {
  const program = parseAst(source, { lang: 'js' }) as unknown as Node;
  return withLocalNamesBy(program, source, plainFieldEdits(program));
}
