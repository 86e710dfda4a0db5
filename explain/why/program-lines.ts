/**
 * Program lines of library calls: the line of the program itself, and the lines of its helper functions down to the
 * call.
 *
 *     host0  program.ts:86   await open(program, …)         the line
 *       open program.ts:62     await modifyQp(qp, …)        within it
 *
 * A frame that all calls of a host share only starts the program and is left out; then the next one likewise.
 */

/** A line of the program and the lines of its helpers within it, the innermost last. */
export interface ProgramLine {
  readonly line: string;
  readonly within: readonly string[];
}

export class ProgramLines {
  readonly #file: string | undefined;
  readonly #isLibrary: (frame: string) => boolean;
  /** Frames of each stack, the outermost first, by node. Stacks are numbered. */
  readonly #stacks: { readonly node: number; readonly frames: readonly string[] }[] = [];
  readonly #numbers = new Map<string, string>();
  readonly #shared = new Map<number, number>();

  /**
   * @param file the program, if its own helpers are in other files; undefined: all files count alike
   * @param isLibrary whether a line of a stack belongs neither to the program nor to its helpers
   */
  constructor(file: string | undefined, isLibrary: (frame: string) => boolean) {
    this.#file = file;
    this.#isLibrary = isLibrary;
  }

  /**
   * Stores the lines of a stack.
   * @returns a name for {@link lineOf}; undefined if no line belongs to the program
   */
  note(node: number, stack: string): string | undefined {
    const frames = stack
      .split('\n')
      .slice(1)
      .filter((frame) => frame.includes(':') && !this.#isLibrary(frame))
      .flatMap((frame) => /(?:file:\/\/)?([^\s()]+:\d+):\d+\)?$/.exec(frame)?.[1] ?? [])
      .reverse();
    if (frames.length === 0) return undefined;
    const key = `${node} ${frames.join('\n')}`;
    const known = this.#numbers.get(key);
    if (known !== undefined) return known;
    const name = String(this.#stacks.length);
    this.#stacks.push({ node, frames });
    this.#numbers.set(key, name);
    this.#shared.clear();
    return name;
  }

  /** The lines of a stored stack. */
  lineOf(name: string | undefined): ProgramLine | undefined {
    const stack = name === undefined ? undefined : this.#stacks[Number(name)];
    if (stack === undefined) return undefined;
    const { node, frames } = stack;
    const own = frames.slice(Math.min(this.#sharedFrames(node), frames.length - 1));
    const first = Math.max(
      0,
      own.findIndex((frame) => this.#file !== undefined && fileOf(frame) === this.#file),
    );
    const [line, ...within] = own.slice(first);
    return { line: line!, within };
  }

  /** Outermost frames that all stacks of a node share and that are not a library call in any of them. */
  #sharedFrames(node: number): number {
    const known = this.#shared.get(node);
    if (known !== undefined) return known;
    const all = this.#stacks.filter((stack) => stack.node === node).map(({ frames }) => frames);
    const [first] = all;
    const isShared = (place: number): boolean =>
      all.length > 1 && all.every((frames) => frames.length > place + 1 && frames[place] === first?.[place]);
    let shared = 0;
    while (isShared(shared)) shared++;
    this.#shared.set(node, shared);
    return shared;
  }
}

const fileOf = (frame: string): string => frame.slice(0, frame.lastIndexOf(':'));
