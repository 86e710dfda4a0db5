/** What is done to the text of built modules once they are JavaScript: both rewritings, by one syntax tree, which takes most of the time. */
import { parseAst } from 'rolldown/parseAst';
import type { Node } from './edit.ts';
import { withLocalNamesBy } from './local-names.ts';
import { plainFieldEdits } from './plain-fields.ts';

/** @returns the module with plain fields and local names. @throws SyntaxError when the source is no module */
export function rewritten(source: string): string {
  const program = parseAst(source, { lang: 'js' }) as unknown as Node;
  return withLocalNamesBy(program, source, plainFieldEdits(program));
}
