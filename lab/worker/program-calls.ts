/**
 * The lines from which a host's program called the library, with times. They give the line of a finding for which the
 * linter or the race watch has only the instant.
 */
import type { ProgramContext } from '../../browser.ts';
import { lineIn } from './program-text.ts';

type AnyFunction = (...args: readonly unknown[]) => unknown;

/** Number of kept calls: enough for a program of a lab; a longer one keeps the last. */
const callsMax = 100_000;

export class ProgramCalls {
  #atPs: number[] = [];
  #lines: number[] = [];
  #names: string[] = [];
  #program: ProgramContext | undefined;
  #logCount = 0;

  /** Lines that the program has written to the log. */
  get logCount(): number {
    return this.#logCount;
  }

  /** The line of the last call. */
  get line(): number | undefined {
    return this.#lines.at(-1);
  }

  /**
   * The line of the last call at or before an instant.
   * @param pattern of the function names that count; default: all
   */
  lineAt(atPs: number, pattern?: RegExp): number | undefined {
    const counts = (at: number): boolean => pattern === undefined || pattern.test(this.#names[at]!);
    return this.#lines[this.#atPs.findLastIndex((each, at) => each <= atPs && counts(at))];
  }

  /** The library, with functions that record their lines. */
  libraryOf(library: object): object {
    const entries = Object.entries(library).map(([name, value]) => [
      name,
      isPlainFunction(value) ? this.#noting(name, value) : value,
    ]);
    return Object.fromEntries(entries);
  }

  /** The program's context; calls to its memory, processor and exchange record their lines too. */
  contextOf(program: ProgramContext): ProgramContext {
    this.#program = program;
    const { memory, cpu, exchange } = program;
    return {
      ...program,
      memory: this.#watched(memory),
      cpu: this.#watched(cpu),
      exchange: this.#watched(exchange),
      log: (text) => {
        this.#logCount++;
        program.log(text);
      },
    };
  }

  #watched<Part extends object>(part: Part): Part {
    const known = new Map<string | symbol, unknown>();
    return new Proxy(part, {
      get: (target, name) => {
        const value: unknown = Reflect.get(target, name, target);
        if (typeof value !== 'function') return value;
        if (!known.has(name))
          known.set(name, this.#noting(String(name), (value as AnyFunction).bind(target)));
        return known.get(name);
      },
    });
  }

  #noting(name: string, call: AnyFunction): AnyFunction {
    return (...args) => {
      this.#note(name);
      return call(...args);
    };
  }

  #note(name: string): void {
    const line = lineIn(new Error('place'));
    if (line === undefined) return;
    if (this.#lines.length === 2 * callsMax) {
      this.#lines = this.#lines.slice(callsMax);
      this.#atPs = this.#atPs.slice(callsMax);
      this.#names = this.#names.slice(callsMax);
    }
    this.#lines.push(line);
    this.#names.push(name);
    this.#atPs.push(this.#program?.cpu.localPs ?? 0);
  }
}

/** A class is constructed with `new` and is passed through. */
const isPlainFunction = (value: unknown): value is AnyFunction =>
  typeof value === 'function' && !/^class\b/.test(Function.prototype.toString.call(value));
