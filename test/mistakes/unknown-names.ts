/** Names that a mistake must not use: its tree would stop with a ReferenceError, which any story finds. */
import type { Mistake } from './mistake.ts';

const anyName = /[A-Za-z_$][\w$]*/g;
/** Not members, and not keys of objects, which biome formats without a space before the colon. */
const usedName = /(?<![\w$.#])[A-Za-z_$][\w$]*(?![\w$]|:)/g;
const declaration = /\b(?:const|let) ([\w$]+)/g;
const string = /'[^'\n]*'/g;
const keywords: ReadonlySet<string> = new Set(
  (
    'await break case const continue else false for if in instanceof let new null of return ' +
    'super switch this throw true typeof void while'
  ).split(' '),
);

/**
 * Returns the names in the text of a mistake that neither it nor the source declares or uses, and that are not global.
 * Arguments of functions that only the text has are among them: use a name of the source.
 */
export function unknownNames(source: string, { replace }: Pick<Mistake, 'replace'>): string[] {
  const code = replace.replaceAll(string, "''");
  const declared = [...code.matchAll(declaration)].map(([, name]) => name!);
  const known = new Set([...(source.match(anyName) ?? []), ...declared, ...keywords]);
  return (code.match(usedName) ?? []).filter((name) => !known.has(name) && !(name in globalThis));
}
