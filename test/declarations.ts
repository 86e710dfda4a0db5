/** The declarations of a package, as the compiler writes them: the names exported by its index, and the names that those mention. */
import { readFileSync } from 'node:fs';
import { join, normalize } from 'node:path';

interface Module {
  /** Origin of imported names: file and name there. */
  readonly imports: ReadonlyMap<string, readonly [file: string, name: string]>;
  readonly exports: ReadonlyMap<string, readonly [file: string, name: string]>;
  readonly stars: readonly string[];
  /** Text of each declaration, without comments. */
  readonly declarations: ReadonlyMap<string, string>;
}

/** A declaration: its file and name. */
type Place = readonly [file: string, name: string];

export class Declarations {
  readonly #folder: string;
  readonly #modules = new Map<string, Module | undefined>();

  /** @param folder of the compiled package */
  constructor(folder: string) {
    this.#folder = folder;
  }

  /** The names that a module exports, with their declarations. */
  exportsOf(file: string): Map<string, Place> {
    const { exports, stars, declarations } = this.#read(file)!;
    const found = new Map<string, Place>();
    for (const star of stars) for (const [name, place] of this.exportsOf(star)) found.set(name, place);
    for (const [name, text] of declarations) if (text.startsWith('export')) found.set(name, [file, name]);
    for (const [name, [from, original]] of exports) {
      const place = this.#find(from, original);
      if (place !== undefined) found.set(name, place);
    }
    return found;
  }

  textOf([file, name]: Place): string {
    return this.#read(file)!.declarations.get(name)!;
  }

  /** Types of the package mentioned by a declaration: names that begin with a capital. */
  typesIn(place: Place): Place[] {
    const [file, own] = place;
    const words = new Set(
      this.textOf(place)
        .replace(/'[^']*'/g, '')
        .match(/\b[A-Z]\w*\b/g),
    );
    const found: Place[] = [];
    for (const word of words) {
      const there = word === own ? undefined : this.#find(file, word);
      if (there !== undefined) found.push(there);
    }
    return found;
  }

  #find(file: string, name: string): Place | undefined {
    const module = this.#read(file);
    if (module === undefined) return undefined;
    if (module.declarations.has(name)) return [file, name];
    const next = module.exports.get(name) ?? module.imports.get(name);
    if (next !== undefined) return this.#find(...next);
    for (const star of module.stars) {
      const there = this.#find(star, name);
      if (there !== undefined) return there;
    }
    return undefined;
  }

  #read(file: string): Module | undefined {
    if (!this.#modules.has(file))
      this.#modules.set(file, file.startsWith('.') ? undefined : this.#parsed(file));
    return this.#modules.get(file);
  }

  #parsed(file: string): Module {
    const text = readFileSync(join(this.#folder, file), 'utf8').replace(/\/\*[\s\S]*?\*\/|\/\/.*/g, '');
    // A package's own name is not a file: it is kept, with a leading dot.
    const fileOf = (name: string): string =>
      name.startsWith('.') ? normalize(join(file, '..', name)).replace(/\.[jt]s$/, '.d.ts') : `.${name}`;
    const imports = new Map<string, Place>();
    const exports = new Map<string, Place>();
    for (const [, word, list, from] of text.matchAll(
      /(import|export)\s+(?:type\s+)?\{([^}]*)\}\s+from\s+'([^']+)'/g,
    ))
      for (const part of list!.split(',')) {
        const [original, name = original] = part
          .replace(/\btype\s/, '')
          .trim()
          .split(' as ');
        if (original !== '') (word === 'import' ? imports : exports).set(name!, [fileOf(from!), original!]);
      }
    const stars = [...text.matchAll(/export\s+(?:type\s+)?\*\s+from\s+'([^']+)'/g)].map(([, from]) =>
      fileOf(from!),
    );
    const declarations = new Map<string, string>();
    const pieces = text.split(
      /^(?=(?:export |declare |abstract )*(?:class|interface|type|function|const|import|export) ?)/m,
    );
    for (const piece of pieces) {
      const name = /^(?:export |declare |abstract )*(?:class|interface|type|function|const) (\w+)/.exec(
        piece,
      )?.[1];
      if (name !== undefined) declarations.set(name, (declarations.get(name) ?? '') + piece);
    }
    return { imports, exports, stars, declarations };
  }
}
