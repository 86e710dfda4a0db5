/**
 * Rewrites built modules so that the names used in their functions are constants of the module itself, whose values V8 folds
 * into its code. Their behaviour is unchanged.
 *
 *     import { ceil } from './bytes.js';           import { ceil as ceil$import } from './bytes.js';
 *                                                  const ceil = ceil$import;
 *     export const SIZE = 4;                 =>    const SIZE = 4;
 *     export class Ring { … }                      const Ring = class { … };
 *     function twice(a) { … }                      function twice$function(a) { … }   (and at the top: const twice = …)
 *                                                  const SIZE$export = SIZE; … export { SIZE$export as SIZE, … };
 *
 * An imported or exported name is a cell outside the functions: each use loads the cell and checks its value, six instructions,
 * even if the named function is then inlined. A declared function or class could be assigned another value: its uses are
 * checked, too.
 *
 * Modules must not import each other in a cycle, because a name may then be used before it has its value: `npm run lint` checks
 * this.
 */
import { parseAst } from 'rolldown/parseAst';
import { applyEdits, type Edit, isNode, type Node, nameOf } from './edit.ts';

/** @returns the module with local names. @throws SyntaxError if the source is not a module */
export function withLocalNames(source: string): string {
  return withLocalNamesBy(parseAst(source, { lang: 'js' }) as unknown as Node, source, []);
}

/**
 * @param program the module's syntax tree
 * @param others edits inside its functions and classes
 * @returns the module with local names and these edits
 */
export function withLocalNamesBy(program: Node, source: string, others: readonly Edit[]): string {
  return new NameRewriter(source).rewrite(program['body'] as readonly Node[], others);
}

class NameRewriter {
  readonly #source: string;
  readonly #edits: Edit[] = [];
  /** Constants at the top: for imports, and for functions, which may be used before their declaration. */
  readonly #constants: string[] = [];
  /** Export list at the end of the module. */
  readonly #exports: { readonly local: string; readonly exported: string }[] = [];

  constructor(source: string) {
    this.#source = source;
  }

  rewrite(body: readonly Node[], others: readonly Edit[]): string {
    for (const statement of body) {
      if (statement.type === 'ImportDeclaration') this.#import(statement);
      else if (statement.type === 'ExportNamedDeclaration') this.#export(statement);
      else this.#declare(statement);
    }
    const first = body.find(({ type }) => type !== 'ImportDeclaration');
    if (first !== undefined && this.#constants.length > 0) {
      this.#edits.unshift({
        start: first.start,
        end: first.start,
        text: `const ${this.#constants.join(', ')};\n`,
      });
    }
    return applyEdits(this.#source, [...this.#edits, ...others]) + this.#exportsAtEnd();
  }

  #import(statement: Node): void {
    if (!String((statement['source'] as Node)['value']).startsWith('.')) return;
    for (const specifier of statement['specifiers'] as readonly Node[]) {
      if (specifier.type !== 'ImportSpecifier') continue;
      const local = nameOf(specifier['local'] as Node);
      this.#replace(specifier, `${nameOf(specifier['imported'] as Node)} as ${local}$import`);
      this.#constants.push(`${local} = ${local}$import`);
    }
  }

  #export(statement: Node): void {
    const declaration = statement['declaration'] as Node | null;
    if (declaration !== null) {
      this.#edits.push({ start: statement.start, end: declaration.start, text: '' });
      this.#declare(declaration);
      for (const name of namesDeclaredIn(declaration)) this.#exports.push({ local: name, exported: name });
    } else if (statement['source'] === null) {
      for (const specifier of statement['specifiers'] as readonly Node[]) {
        const [local, exported] = [specifier['local'] as Node, specifier['exported'] as Node];
        this.#exports.push({ local: nameOf(local), exported: nameOf(exported) });
      }
      this.#replace(statement, '');
    }
  }

  /** Turns a declaration of a function or a class into one of a constant. */
  #declare(declaration: Node): void {
    const id = declaration['id'] as Node;
    if (declaration.type === 'FunctionDeclaration') {
      this.#replace(id, `${nameOf(id)}$function`);
      this.#constants.push(`${nameOf(id)} = ${nameOf(id)}$function`);
    } else if (declaration.type === 'ClassDeclaration') {
      this.#edits.push({ start: declaration.start, end: id.end, text: `const ${nameOf(id)} = class` });
      this.#edits.push({ start: declaration.end, end: declaration.end, text: ';' });
    } else if (isClassInVariable(declaration)) {
      this.#edits.push({ start: declaration.start, end: declaration.start + 'var'.length, text: 'const' });
    }
  }

  #exportsAtEnd(): string {
    if (this.#exports.length === 0) return '';
    const constants = this.#exports.map(({ local, exported }) => `${exported}$export = ${local}`);
    const names = this.#exports.map(({ exported }) => `${exported}$export as ${exported}`);
    return `\nconst ${constants.join(', ')};\nexport { ${names.join(', ')} };\n`;
  }

  #replace({ start, end }: Node, text: string): void {
    this.#edits.push({ start, end, text });
  }
}

/** A bundler's form of a class declaration: `var Ring = class { … };` */
function isClassInVariable(declaration: Node): boolean {
  if (declaration.type !== 'VariableDeclaration' || declaration['kind'] !== 'var') return false;
  const [first, ...others] = declaration['declarations'] as readonly Node[];
  return others.length === 0 && isNode(first!['init']) && first!['init'].type === 'ClassExpression';
}

function namesDeclaredIn(declaration: Node): readonly string[] {
  if (declaration.type !== 'VariableDeclaration') return [nameOf(declaration['id'] as Node)];
  return (declaration['declarations'] as readonly Node[]).flatMap((each) => namesIn(each['id'] as Node));
}

/** Names that a pattern assigns. */
function namesIn(pattern: Node): readonly string[] {
  if (pattern.type === 'Identifier') return [nameOf(pattern)];
  if (pattern.type !== 'ObjectPattern') throw new SyntaxError(`${pattern.type} among what is exported`);
  return (pattern['properties'] as readonly Node[]).flatMap((property) => namesIn(property['value'] as Node));
}
