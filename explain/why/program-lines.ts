/**
 * Lines of a program for calls of the library: that of the program itself, and those of its helper functions down to the call.
 *
 *     host0  program.ts:86   await open(program, …)         the line
 *       open program.ts:62     await modifyQp(qp, …)        within it
 *
 * A frame that all calls of a host have in common says nothing: it only starts the program. It is left out, and then the next one, too.
 */

/** A line of the program and the lines of its helpers within it, the innermost last. */
export interface ProgramLine {
  readonly line: string;
  readonly within: readonly string[];
}

export class ProgramLines {
  readonly #file: string | undefined;
  readonly #isLibrary: (frame: string) => boolean;
  /** Frames of each stack, the outermost first, by node. A stack is named by its number. */
  readonly #stacks: { readonly node: number; readonly frames: readonly string[] }[] = [];
  readonly #numbers = new Map<string, string>();
  readonly #shared = new Map<number, number>();

  /**
   * @param file the program, among the files of its own helpers; undefined: each file counts alike
   * @param isLibrary whether a line of a stack is not of the program or its helpers
   */
  constructor(file: string | undefined, isLibrary: (frame: string) => boolean) {
    this.#file = file;
    this.#isLibrary = isLibrary;
  }

  /** Keeps the lines of a stack. @returns a name for {@link lineOf}; undefined if no line belongs to the program */
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

  /** The lines of a stack that was noted. */
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

  /** Outermost frames that all stacks of a node have in common, and that are no call of the library in any. */
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
